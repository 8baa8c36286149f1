/** What the kernel tells the page, and the other way round. */

export type Act = (action: string, value?: unknown) => number;

export interface Model {
  get(name: string): any;
  send(content: unknown): void;
  on(names: string, hear: (...args: any[]) => void): void;
  off(names: string, hear: (...args: any[]) => void): void;
}

export interface Fact { label: string; value: string; about?: string }
export interface Head {
  title: string; about?: string; subtitle?: string; is_bad?: boolean; facts?: Fact[]; busy?: string; buttons?: Field[];
}
export interface Chip { text: string; action: { chip: string }; about?: string }
export interface Query {
  text: string; error?: string; hint?: string; summary?: string; busy?: boolean; chips?: Chip[]; ideas?: string[];
  code?: string; tip?: { text: string; filter: string } | null;
}
export interface Tab { name: string; title: string }
export interface PartPlace { tab: string; title: string; is_beside?: boolean }
export interface PartContent {
  name: string; caption?: string; is_busy?: boolean; blocks: Block[]; code?: string;
}
export interface Arrangement { collapsed: string[]; wide: string[] }

export interface TextBlock { is: "text"; text: string; live?: string; tone?: string }
export interface FactsBlock { is: "facts"; facts: Fact[] }
export interface CodeBlock { is: "code"; text: string }
export interface FigureBlock {
  is: "figure"; id: string; svg: string; label: string; marks?: "x" | "xy" | ""; zoom?: boolean;
  zoomed?: boolean; typed?: { lower: string; upper: string } | null; log?: boolean | null; name?: string;
}
export interface Column {
  name: string; title: string; width: string; align?: "start" | "end"; sortable?: boolean; about?: string; hidden?: boolean; roomy?: boolean; wraps?: boolean; name_pixels?: number;
}
export interface Cell { t?: string; h?: string; s?: string; k?: string; b?: number; a?: string; do?: string; svg?: string }
export interface Row { key: string; depth?: number; open?: boolean; cells: Cell[] }
export interface GridBlock {
  is: "grid"; id: string; label: string; columns: Column[]; row_count: number; offset: number; rows: Row[];
  sort?: { column?: string; descending?: boolean } | null; search?: { placeholder: string; text: string } | null;
  selected?: string[]; is_tree?: boolean; most_rows?: number; row_height?: number; note?: string; name?: string; number: number;
}
export interface Option { value: string; text: string; about?: string }
export interface Field {
  is: "choice" | "toggle" | "number" | "text" | "button" | "progress" | "many"; name: string; label: string; value?: any;
  options?: Option[]; disabled?: boolean; tone?: "" | "primary" | "danger"; about?: string; action?: string; least?: number; most?: number;
}
export interface FormBlock { is: "form"; fields: Field[] }
export interface CardBlock {
  is: "card"; id: string; title: string; tone?: string; is_open?: boolean | null; blocks: Block[]; actions?: Field[];
}
export interface SideBlock { is: "side"; blocks: Block[]; shares?: number[] }
export type Block = TextBlock | FactsBlock | CodeBlock | FigureBlock | GridBlock | FormBlock | CardBlock | SideBlock;

export interface Completion { text: string; about: string }
export interface Completions { kind: "completions"; number: number; start: number; end?: number; items: Completion[] }
export interface RowsMessage { kind: "rows"; grid: string; offset: number; row_count: number; rows: Row[]; number: number }
export interface FileMessage { kind: "file"; name: string; type: string; text: string }
export interface SaidMessage { kind: "code" | "problem"; text: string }
export interface PartMessage { kind: "part"; part: string }
export type Message = (PartMessage | Completions | RowsMessage | FileMessage | SaidMessage) & { view?: string };
