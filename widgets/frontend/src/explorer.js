/** @import { Model } from "./protocol.d.ts" */
import { html } from "htm/preact";
import { render as draw } from "preact";

import { LinkContext } from "./hooks.js";
import { Link } from "./link.js";
import { Shell } from "./shell.js";
import { followTheme, hidePicture, letStick } from "./surroundings.js";

/** @param {{ model: Model, el: HTMLElement }} view */
function render({ model, el }) {
  const link = new Link(model);
  draw(html`<${LinkContext.Provider} value=${link}><${Shell} /><//>`, el);
  const leave = [followTheme(el), letStick(el), hidePicture(model.get("picture_id"), link)];
  return () => {
    for (const one of leave) one();
    draw(null, el);
    link.close();
  };
}

export default { render };
