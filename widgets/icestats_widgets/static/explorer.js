/*!
preact:

The MIT License (MIT)

Copyright (c) 2015-present Jason Miller

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.

htm:

Apache License, Version 2.0. Copyright 2018 Google Inc.
*/

// node_modules/preact/dist/preact.mjs
var n;
var t;
var r;
var u;
var i;
var f;
var o;
var e;
var l;
var c;
var a;
var s;
var h = /* @__PURE__ */ Symbol.for("pv");
var p = {};
var y = [];
var v = /^m(i|n|o|s|text|space)$/;
var w = Array.isArray;
var d = y.slice;
var _ = Object.assign;
function g(n3) {
  n3 && n3.parentNode && n3.remove();
}
function k(n3, t4, r3) {
  var u3, i3, f3, o3 = {}, e3 = arguments.length;
  for (f3 in t4) "key" == f3 ? u3 = t4[f3] : "ref" == f3 && "function" != typeof n3 ? i3 = t4[f3] : o3[f3] = t4[f3];
  return e3 > 2 && (o3.children = e3 > 3 ? d.call(arguments, 2) : r3), m(n3, o3, u3, i3, null);
}
function m(r3, u3, i3, f3, o3) {
  var e3 = { type: r3, props: u3, key: i3, ref: f3, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: h, __v: o3 || ++t, __i: -1, __u: 0 };
  return !o3 && n.vnode && n.vnode(e3), e3;
}
function $(n3) {
  return n3.children;
}
function x(n3, t4) {
  this.props = n3, this.context = t4, this.__g = 0;
}
function S(n3, t4) {
  if (null == t4) return n3.__ && S(n3.__, n3.__i + 1);
  for (var r3; t4 < n3.__k.length; t4++) if ((r3 = n3.__k[t4]) && r3.__e) return r3.__e;
  return "function" != typeof n3.type || n3.props.__P ? null : S(n3);
}
function C(t4) {
  var r3, u3 = t4.__v, i3 = u3.__e, f3 = [], o3 = [], e3 = t4.__P;
  e3 && ((r3 = _({ constructor: h }, u3)).__v = u3.__v + 1, n.vnode && n.vnode(r3), z(e3, r3, u3, t4.__n, e3.namespaceURI, 32 & u3.__u ? [i3] : null, f3, i3 || S(u3), 32 & u3.__u, o3), r3.__v = u3.__v, r3.__.__k[r3.__i] = r3, E(f3, r3, o3), u3.__ = u3.__e = null, r3.__e != i3 && j(r3));
}
function j(n3) {
  if ((n3 = n3.__) && n3.__c && !n3.props.__P) return n3.__e = null, n3.__k.some(function(t4) {
    return t4 && (n3.__e = t4.__e);
  }), j(n3);
}
function L(t4) {
  (8 & t4.__g || (t4.__g |= 8, u.push(t4), f++)) && i == n.debounceRendering || ((i = n.debounceRendering) || queueMicrotask)(H);
}
function H() {
  try {
    for (var n3, t4 = 1; u.length; ) u.length > t4 && u.sort(o), n3 = u.shift(), t4 = u.length, 8 & n3.__g && C(n3);
  } finally {
    (f = u.length) && (i || queueMicrotask)(H);
  }
}
function I(n3, t4, r3, u3, i3, f3, o3, e3, l3, c3, a3) {
  var s3, h3, v3, w3, d3, _3, g3 = u3.__k || y, k3 = t4.length;
  for (l3 = q(r3, t4, g3, l3, k3), s3 = 0; s3 < k3; s3++) null != (v3 = r3.__k[s3]) && (h3 = ~v3.__i && g3[v3.__i] || p, v3.__i = s3, _3 = z(n3, v3, h3, i3, f3, o3, e3, l3, c3, a3), w3 = v3.__e, (h3.ref != v3.ref || 8 & h3.__u) && (h3.ref && G(h3.ref, null, v3, h3), v3.ref && a3.push(v3.ref, v3.__c || w3, v3)), d3 = d3 || w3, 4 & v3.__u ? (l3 = A(v3, l3, n3, !h3.__v), h3.__e && (h3.__e = null)) : "function" == typeof v3.type && void 0 !== _3 ? l3 = _3 : w3 && (l3 = w3.nextSibling), v3.__u &= -21);
  return r3.__e = d3, l3;
}
function q(n3, t4, r3, u3, i3) {
  var f3, o3, e3, l3, c3, a3, s3, p3, y3, v3 = r3.length, d3 = v3, _3 = 0, g3 = 0, k3 = n3.__k = Array(i3);
  for (f3 = 0; f3 < i3; f3++) null != (o3 = t4[f3]) && "boolean" != typeof o3 && "function" != typeof o3 ? ("object" != typeof o3 || o3.constructor === String ? o3 = k3[f3] = m(null, o3) : w(o3) ? o3 = k3[f3] = m($, { children: o3 }) : o3.constructor === h && o3.__b ? o3 = k3[f3] = m(o3.type, o3.props, o3.key, o3.ref, o3.__v) : k3[f3] = o3, l3 = f3 + _3, o3.__ = n3, o3.__b = n3.__b + 1, e3 = null, ~(c3 = o3.__i = P(o3, r3, l3, d3)) && (d3--, (e3 = r3[c3]) && (e3.__u |= 2)), e3 && e3.__v ? (o3.__u |= 16, c3 == l3 - 1 ? _3-- : c3 == l3 + 1 ? _3++ : c3 != l3 && (c3 > l3 ? _3-- : _3++, g3 = 1)) : (~c3 || (i3 > v3 ? _3-- : i3 < v3 && _3++), "function" != typeof o3.type && (o3.__u |= 4))) : k3[f3] = null;
  if (g3) {
    for (a3 = [], s3 = [], f3 = 0; f3 < i3; f3++) if ((o3 = k3[f3]) && 16 & o3.__u) {
      for (_3 = 0, p3 = a3.length; _3 < p3; ) a3[y3 = _3 + p3 >> 1] < o3.__i ? _3 = y3 + 1 : p3 = y3;
      a3[_3] = o3.__i, s3[f3] = _3 + 1;
    }
    for (_3 = a3.length; f3--; ) s3[f3] && (s3[f3] == _3 ? _3-- : k3[f3].__u |= 4);
  }
  if (d3) for (f3 = 0; f3 < v3; f3++) !(e3 = r3[f3]) || 2 & e3.__u || (e3.__e == u3 && (u3 = S(e3)), J(e3, e3));
  return u3;
}
function A(n3, t4, r3, u3) {
  var i3, f3, o3, e3;
  if ("function" == typeof n3.type) {
    if (n3.props.__P) return t4;
    if (i3 = n3.__k) for (f3 = 0; f3 < i3.length; f3++) i3[f3] && (i3[f3].__ = n3, t4 = A(i3[f3], t4, r3, false));
    return t4;
  }
  for (t4 && !t4.parentNode && (t4 = S(n3)) && !t4.parentNode && (t4 = null), o3 = n3.__e, e3 = t4; e3 && 8 == e3.nodeType; ) e3 = e3.nextSibling;
  for (o3 != e3 && (!u3 && r3.moveBefore && o3.parentNode ? r3.moveBefore(o3, t4) : r3.insertBefore(o3, t4 || null)), t4 = o3; (t4 = t4 && t4.nextSibling) && 8 == t4.nodeType && !t4.data.startsWith("$s"); ) ;
  return t4;
}
function P(n3, t4, r3, u3) {
  var i3, f3 = n3.key, o3 = n3.type, e3 = t4[r3], l3 = e3 && !(2 & e3.__u);
  if (null === e3 && null == f3 || l3 && f3 == e3.key && o3 == e3.type) return r3;
  if (u3 > (l3 ? 1 : 0)) {
    for (i3 = r3 - 1; i3 >= 0; i3--) if ((e3 = t4[i3]) && !(2 & e3.__u) && f3 == e3.key && o3 == e3.type) return i3;
    for (i3 = r3 + 1; i3 < t4.length; i3++) if ((e3 = t4[i3]) && !(2 & e3.__u) && f3 == e3.key && o3 == e3.type) return i3;
  }
  return -1;
}
function T(n3, t4, r3) {
  null == r3 && (r3 = ""), "-" == t4[0] ? n3.setProperty(t4, r3) : n3[t4] = r3;
}
function N(n3, t4, r3, u3, i3) {
  var f3, o3;
  if ("style" == t4) if ("string" == typeof r3) n3.style.cssText = r3;
  else {
    if ("string" == typeof u3 && (n3.style.cssText = u3 = ""), u3) for (t4 in u3) r3 && t4 in r3 || T(n3.style, t4);
    if (r3) for (t4 in r3) u3 && r3[t4] == u3[t4] || T(n3.style, t4, r3[t4]);
  }
  else if ("o" == t4[0] && "n" == t4[1]) "function" != typeof r3 && (r3 = null), "function" != typeof u3 && (u3 = null), (n3.__e || (n3.__e = {}))[t4] = r3, r3 && u3 || (o3 = a[t4] || (a[t4] = V(t4)), (n3.__a || (n3.__a = {}))[t4] = c, f3 = t4 != (t4 = t4.replace(l, "$1")), (t4 = t4.slice(2))[0] < "a" && (t4 = t4.toLowerCase()), r3 ? n3.addEventListener(t4, o3, f3) : n3.removeEventListener(t4, o3, f3));
  else {
    if ("http://www.w3.org/2000/svg" == i3) t4 = t4.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
    else if ("width" != t4 && "height" != t4 && "href" != t4 && "list" != t4 && "form" != t4 && "tabIndex" != t4 && "download" != t4 && "rowSpan" != t4 && "colSpan" != t4 && "role" != t4 && "popover" != t4 && t4 in n3) try {
      return void (n3[t4] = null == r3 ? "" : r3);
    } catch (n4) {
    }
    if ("function" == typeof r3) return;
    null == r3 || false === r3 && "-" != t4[4] ? n3.removeAttribute(t4) : n3.setAttribute(t4, "popover" == t4 && 1 == r3 ? "" : r3);
  }
}
function V(t4) {
  return function(r3) {
    var u3 = this.__e;
    if (u3) {
      if (u3 = u3[t4], null == r3[e]) r3[e] = c++;
      else if (r3[e] < this.__a[t4]) return;
      return u3(n.event ? n.event(r3) : r3);
    }
  };
}
function z(t4, r3, u3, i3, f3, o3, e3, l3, c3, a3) {
  var s3, p3, v3, d3, k3, b, m4, M, C3, j3, L2, H2, q2, A3, O, P2, T3, N2, V2 = r3.type;
  if (r3.constructor !== h) return null;
  128 & u3.__u && (c3 = 32 & u3.__u, s3 = u3.__c.__z) && (r3.__u |= c3, p3 = o3 = [], 8 == s3.nodeType ? l3 = B(s3, o3) : o3.push(s3), l3 = o3[0] || l3), (s3 = n.__b) && s3(r3);
  n: if ("function" == typeof V2) {
    v3 = e3.length;
    try {
      if (M = r3.props, C3 = (s3 = V2.prototype) && s3.render, j3 = (s3 = V2.contextType) && i3[s3.__c], L2 = s3 ? j3 ? j3.props.value : s3.__ : i3, (d3 = u3.__c) ? (r3.__c = d3, 2 & d3.__g && (d3.__g |= 1)) : (C3 ? r3.__c = d3 = new V2(M, L2) : (r3.__c = d3 = new x(M, L2), d3.constructor = V2, d3.render = K), j3 && j3.sub(d3), d3.state || (d3.state = {}), d3.__n = i3, d3.__g |= 8, d3.__h = [], d3.__k = []), C3 && (d3.__s || (d3.__s = d3.state), V2.getDerivedStateFromProps && (d3.__s == d3.state && (d3.__s = _({}, d3.__s)), _(d3.__s, V2.getDerivedStateFromProps(M, d3.__s)))), k3 = d3.props, b = d3.state, d3.__v = r3, u3.__c) {
        if (M !== k3 && C3 && !V2.getDerivedStateFromProps && d3.componentWillReceiveProps && d3.componentWillReceiveProps(M, L2), r3.__v == u3.__v && !(8 & d3.__g) || !(4 & d3.__g) && d3.shouldComponentUpdate && false === d3.shouldComponentUpdate(M, d3.__s, L2)) {
          r3.__v != u3.__v && (d3.props = M, d3.state = d3.__s, d3.__g &= -9), r3.__e = u3.__e, r3.__k = u3.__k, r3.__k.some(function(n3) {
            n3 && (n3.__ = r3);
          }), y.push.apply(d3.__h, d3.__k), d3.__k = [], d3.__h.length && e3.push(d3), l3 = S(u3);
          break n;
        }
        d3.componentWillUpdate && d3.componentWillUpdate(M, d3.__s, L2), C3 && d3.componentDidUpdate && d3.__h.push(function() {
          d3.componentDidUpdate(k3, b, m4);
        });
      } else C3 && !V2.getDerivedStateFromProps && d3.componentWillMount && d3.componentWillMount(), C3 && d3.componentDidMount && d3.__h.push(d3.componentDidMount);
      d3.context = L2, d3.props = M, d3.__P = t4, d3.__g &= -5, H2 = n.__r, q2 = C3 ? 25 : 0;
      do {
        d3.__g &= -9, H2 && H2(r3), s3 = d3.render(d3.props, d3.state = d3.__s, d3.context);
      } while (8 & d3.__g && ++q2 < 25);
      C3 && (y.push.apply(d3.__h, d3.__k), d3.__k = []), d3.state = d3.__s, d3.getChildContext && (i3 = _({}, i3, d3.getChildContext())), C3 && u3.__c && d3.getSnapshotBeforeUpdate && (m4 = d3.getSnapshotBeforeUpdate(k3, b)), A3 = s3 && s3.type === $ && null == s3.key ? s3.props.children : s3, M.__P && (s3 = l3, f3 = (t4 = M.__P).namespaceURI, c3 = o3 = null, u3.props && u3.props.__P != t4 && (u3.__k.some(function(n3) {
        n3 && J(n3, n3);
      }), u3.__k = null), l3 = u3.__k ? S(u3, 0) : null), l3 = I(t4, w(A3) ? A3 : [A3], r3, u3, i3, f3, o3, e3, l3, c3, a3), M.__P && (r3.__e = null, l3 = s3), r3.__u &= -161, p3 && p3.some(g), d3.__h.length && e3.push(d3), 1 & d3.__g && (d3.__g &= -4);
    } catch (t5) {
      if (e3.length = v3, r3.__v = null, c3 || o3) if (t5 && t5.then) {
        if (r3.__u |= 128 | c3, o3) {
          for (~(T3 = o3.indexOf(l3 || void 0)) || (T3 = o3.length); (N2 = o3[T3 - 1]) && 8 == N2.nodeType; ) T3--;
          for (; T3 < o3.length; T3++) if (N2 = o3[T3]) if (o3[T3] = null, O) {
            if (N2 == P2) break;
          } else {
            if (8 != N2.nodeType) break;
            N2.data.startsWith("$s") && (P2 = B(O = N2));
          }
        }
        if (!O) {
          for (; l3 && 8 == l3.nodeType && l3.nextSibling; ) l3 = l3.nextSibling;
          O = l3;
        }
        (s3 = B(O = r3.__c.__z || (r3.__c.__z = O))) ? (r3.__e = O, l3 = s3) : r3.__e = l3, l3 = l3 && l3.nextSibling;
      } else o3 && o3.some(g);
      else r3.__e = u3.__e;
      r3.__k || (r3.__k = u3.__k || []), t5 && t5.then || D(r3), n.__e(t5, r3, u3);
    }
  } else l3 = r3.__e = F(u3.__e, r3, u3, i3, f3, o3, e3, c3, a3, t4);
  return (s3 = n.diffed) && s3(r3), l3;
}
function B(n3, t4) {
  if (n3 && 8 == n3.nodeType && n3.data.startsWith("$s")) for (var r3 = 1; n3 = n3.nextSibling; ) {
    if (8 == n3.nodeType) {
      if (n3.data.startsWith("$s")) r3++;
      else if (n3.data.startsWith("/$s") && !--r3) return n3;
    }
    t4 && t4.push(n3);
  }
}
function D(n3) {
  n3 && (n3.__c && (n3.__c.__g |= 4), n3.__k && n3.__k.some(D));
}
function E(t4, r3, u3) {
  for (var i3 = 0; i3 < u3.length; ) G(u3[i3++], u3[i3++], u3[i3++]);
  n.__c && n.__c(r3, t4), t4.some(function(r4) {
    try {
      t4 = r4.__h, r4.__h = [], t4.some(function(n3) {
        n3.call(r4);
      });
    } catch (t5) {
      n.__e(t5, r4.__v);
    }
  });
}
function F(t4, r3, u3, i3, f3, o3, e3, l3, c3, a3) {
  var s3, h3, y3, _3, k3, b, m4, M, $2 = u3.props || p, x2 = r3.props, C3 = r3.type;
  if ("svg" == C3 ? f3 = "http://www.w3.org/2000/svg" : "math" == C3 ? f3 = "http://www.w3.org/1998/Math/MathML" : f3 || (f3 = "http://www.w3.org/1999/xhtml"), o3) {
    for (s3 = 0; s3 < o3.length; s3++) if ((k3 = o3[s3]) && (C3 ? k3.localName == C3 : 3 == k3.nodeType)) {
      t4 = k3, o3[s3] = null;
      break;
    }
  }
  if (!t4) {
    if (M = a3.ownerDocument || document, !C3) return M.createTextNode(x2);
    t4 = M.createElementNS(f3, C3, x2.is ? x2 : a3), l3 && (n.__m && n.__m(r3, o3), l3 = false), o3 = null;
  }
  if (C3) {
    if (a3 = "template" == C3 && t4.content || t4, o3 = "textarea" == C3 && null != x2.defaultValue ? null : o3 && d.call(a3.childNodes), !l3 && o3) for ($2 = {}, s3 = 0; s3 < t4.attributes.length; s3++) $2[(k3 = t4.attributes[s3]).name] = k3.value;
    for (s3 in $2) k3 = $2[s3], "dangerouslySetInnerHTML" == s3 ? y3 = k3 : "children" == s3 || s3 in x2 || "value" == s3 && "defaultValue" in x2 || "checked" == s3 && "defaultChecked" in x2 || N(t4, s3, null, k3, f3);
    for (s3 in x2) k3 = x2[s3], "children" == s3 ? _3 = k3 : "dangerouslySetInnerHTML" == s3 ? h3 = k3 : "value" == s3 ? b = k3 : "checked" == s3 ? m4 = k3 : l3 && "function" != typeof k3 || $2[s3] === k3 || N(t4, s3, k3, $2[s3], f3);
    h3 ? (l3 || y3 && (h3.__html == y3.__html || h3.__html == t4.innerHTML) || (t4.innerHTML = h3.__html), r3.__k = []) : (y3 && (t4.textContent = ""), ("foreignObject" == C3 || "http://www.w3.org/1998/Math/MathML" == f3 && v.test(C3)) && (f3 = "http://www.w3.org/1999/xhtml"), I(a3, w(_3) ? _3 : [_3], r3, u3, i3, f3, o3, e3, o3 ? o3[0] : u3.__k && S(u3, 0), l3, c3), o3 && o3.some(g)), l3 && "textarea" != C3 || (s3 = "value", "progress" == C3 && null == b ? t4.removeAttribute(s3) : null == b || b === t4[s3] && ("progress" != C3 || b) || N(t4, s3, b, $2[s3], f3), s3 = "checked", null != m4 && m4 != t4[s3] && N(t4, s3, m4, $2[s3], f3));
  } else $2 === x2 || l3 && t4.data == x2 || (t4.data = x2);
  return t4;
}
function G(t4, r3, u3, i3) {
  try {
    "function" == typeof t4 ? r3 ? r3.__x = t4(r3) || 1 : i3 && (i3 = i3.__c || i3.__e) && (r3 = i3.__x) && (i3.__x = null, "function" == typeof r3 ? r3() : t4(null)) : t4.current = r3;
  } catch (t5) {
    n.__e(t5, u3);
  }
}
function J(t4, r3, u3) {
  var i3, f3, o3, e3;
  if (n.unmount && n.unmount(t4), !(i3 = t4.ref) || i3.current && i3.current != t4.__e || G(i3, null, r3, t4), i3 = t4.__c) {
    if (i3.componentWillUnmount) try {
      i3.componentWillUnmount();
    } catch (t5) {
      n.__e(t5, r3);
    }
    i3.__P = i3.__n = null;
  }
  if (i3 = t4.__k) for (e3 = 0; e3 < i3.length; e3++) i3[e3] && J(i3[e3], r3, "function" != typeof t4.type || u3 && !t4.props.__P);
  !u3 && (i3 = t4.__c) && (i3 = i3.__z) && (f3 = B(i3, o3 = [])) && (i3 == t4.__e && o3.some(g), g(f3), g(i3)), u3 || g(t4.__e), t4.__e = t4.__c = t4.__ = null;
}
function K(n3, t4, r3) {
  return this.constructor(n3, r3);
}
function Q(t4, r3) {
  var u3, i3, f3, o3;
  n.__ && n.__(t4, r3), 9 == r3.nodeType && (r3 = r3.documentElement), i3 = (u3 = t4 && 32 & t4.__u) ? null : r3.__k, r3.__k = m($, { children: [t4] }), f3 = [], o3 = [], z(r3, r3.__k, i3 || p, p, r3.namespaceURI, i3 ? null : r3.firstChild ? d.call(r3.childNodes) : null, f3, i3 ? i3.__e : r3.firstChild, u3, o3), E(f3, r3.__k, o3), r3.__k.props.children = null;
}
function U(n3) {
  function t4(n4) {
    var r3, u3;
    return this.getChildContext || (r3 = /* @__PURE__ */ new Set(), (u3 = {})[t4.__c] = this, this.getChildContext = function() {
      return u3;
    }, this.shouldComponentUpdate = function(n5) {
      this.props.value != n5.value && r3.forEach(function(n6) {
        n6.__g |= 4, L(n6);
      });
    }, this.sub = function(n5) {
      r3.add(n5);
      var t5 = n5.componentWillUnmount;
      n5.componentWillUnmount = function() {
        r3.delete(n5), t5 && t5.call(n5);
      };
    }), n4.children;
  }
  return t4.__c = "__cC" + s++, t4.__ = n3, t4.Provider = (t4.Consumer = function(n4, t5) {
    return n4.children(t5);
  }).contextType = t4, t4;
}
n = { __e: function(n3, t4, r3, u3) {
  for (var i3, o3, e3; t4 = t4.__; ) if ((i3 = t4.__c) && !(1 & i3.__g)) {
    i3.__g |= 4;
    try {
      if ((e3 = (o3 = i3.constructor) && o3.getDerivedStateFromError) && i3.setState(o3.getDerivedStateFromError(n3)), i3.componentDidCatch && (i3.componentDidCatch(n3, u3 || {}), e3 = 1), e3 && 8 & i3.__g) return void (i3.__g |= 2);
    } catch (t5) {
      n3 = t5;
    }
  }
  throw f = 0, n3;
} }, t = 0, r = function(n3) {
  return null != n3 && n3.constructor === h;
}, x.prototype.setState = function(n3, t4) {
  var r3 = this.__s;
  r3 && r3 != this.state || (r3 = this.__s = _({}, this.state)), "function" == typeof n3 && (n3 = n3(_({}, r3), this.props)), n3 && (_(r3, n3), this.__v && (t4 && this.__k.push(t4), L(this)));
}, x.prototype.forceUpdate = function(n3) {
  this.__v && (this.__g |= 4, n3 && this.__h.push(n3), L(this));
}, x.prototype.render = $, u = [], f = 0, o = function(n3, t4) {
  return n3.__v.__b - t4.__v.__b;
}, e = /* @__PURE__ */ Symbol(), l = /(PointerCapture)$|Capture$/i, c = 0, a = {}, s = 0;

// node_modules/htm/dist/htm.module.js
var n2 = function(t4, s3, r3, e3) {
  var u3;
  s3[0] = 0;
  for (var h3 = 1; h3 < s3.length; h3++) {
    var p3 = s3[h3++], a3 = s3[h3] ? (s3[0] |= p3 ? 1 : 2, r3[s3[h3++]]) : s3[++h3];
    3 === p3 ? e3[0] = a3 : 4 === p3 ? e3[1] = Object.assign(e3[1] || {}, a3) : 5 === p3 ? (e3[1] = e3[1] || {})[s3[++h3]] = a3 : 6 === p3 ? e3[1][s3[++h3]] += a3 + "" : p3 ? (u3 = t4.apply(a3, n2(t4, a3, r3, ["", null])), e3.push(u3), a3[0] ? s3[0] |= 2 : (s3[h3 - 2] = 0, s3[h3] = u3)) : e3.push(a3);
  }
  return e3;
};
var t2 = /* @__PURE__ */ new Map();
function htm_module_default(s3) {
  var r3 = t2.get(this);
  return r3 || (r3 = /* @__PURE__ */ new Map(), t2.set(this, r3)), (r3 = n2(this, r3.get(s3) || (r3.set(s3, r3 = (function(n3) {
    for (var t4, s4, r4 = 1, e3 = "", u3 = "", h3 = [0], p3 = function(n4) {
      1 === r4 && (n4 || (e3 = e3.replace(/^\s*\n\s*|\s*\n\s*$/g, ""))) ? h3.push(0, n4, e3) : 3 === r4 && (n4 || e3) ? (h3.push(3, n4, e3), r4 = 2) : 2 === r4 && "..." === e3 && n4 ? h3.push(4, n4, 0) : 2 === r4 && e3 && !n4 ? h3.push(5, 0, true, e3) : r4 >= 5 && ((e3 || !n4 && 5 === r4) && (h3.push(r4, 0, e3, s4), r4 = 6), n4 && (h3.push(r4, n4, 0, s4), r4 = 6)), e3 = "";
    }, a3 = 0; a3 < n3.length; a3++) {
      a3 && (1 === r4 && p3(), p3(a3));
      for (var l3 = 0; l3 < n3[a3].length; l3++) t4 = n3[a3][l3], 1 === r4 ? "<" === t4 ? (p3(), h3 = [h3], r4 = 3) : e3 += t4 : 4 === r4 ? "--" === e3 && ">" === t4 ? (r4 = 1, e3 = "") : e3 = t4 + e3[0] : u3 ? t4 === u3 ? u3 = "" : e3 += t4 : '"' === t4 || "'" === t4 ? u3 = t4 : ">" === t4 ? (p3(), r4 = 1) : r4 && ("=" === t4 ? (r4 = 5, s4 = e3, e3 = "") : "/" === t4 && (r4 < 5 || ">" === n3[a3][l3 + 1]) ? (p3(), 3 === r4 && (h3 = h3[0]), r4 = h3, (h3 = h3[0]).push(2, 0, r4), r4 = 0) : " " === t4 || "	" === t4 || "\n" === t4 || "\r" === t4 ? (p3(), r4 = 2) : e3 += t4), 3 === r4 && "!--" === e3 && (r4 = 4, h3 = h3[0]);
    }
    return p3(), h3;
  })(s3)), r3), arguments, [])).length > 1 ? r3 : r3[0];
}

// node_modules/htm/preact/index.module.js
var m2 = htm_module_default.bind(k);

// node_modules/preact/hooks/dist/hooks.mjs
var t3;
var r2;
var u2;
var i2;
var o2 = Object.is;
var f2 = 0;
var c2 = [];
var e2 = [];
var a2 = n;
var v2 = a2.__b;
var l2 = a2.__r;
var m3 = a2.diffed;
var h2 = a2.__c;
var s2 = a2.unmount;
var p2 = a2.__;
function y2(n3, t4) {
  a2.__h && a2.__h(r2, n3, f2 || t4), f2 = 0;
  var u3 = r2.__H || (r2.__H = { __: [], __h: [] });
  return n3 >= u3.__.length && u3.__.push({}), u3.__[n3];
}
function d2(n3) {
  return f2 = 1, _2(G2, n3);
}
function _2(n3, u3, i3) {
  var f3 = y2(t3++, 2);
  if (f3.t = n3, !f3.__c && (f3.__ = [i3 ? i3(u3) : G2(void 0, u3), function(n4) {
    var t4 = (f3.__N || f3.__)[0], r3 = f3.t(t4, n4);
    o2(t4, r3) || (f3.__N = [r3, f3.__[1]], f3.__c.setState({}));
  }], f3.__c = r2, !r2.__f)) {
    r2.__f = true;
    var c3 = r2.shouldComponentUpdate;
    r2.shouldComponentUpdate = function(n4, t4, r3) {
      var u4 = this.__H;
      if (!u4) return true;
      var i4 = false, f4 = this.props != n4;
      if (u4.__.some(function(n5) {
        n5.__N && (i4 = true, o2(n5.__[0], n5.__N[0]) || (f4 = true));
      }), c3) {
        var e3 = c3.call(this, n4, t4, r3);
        return i4 ? e3 || f4 : e3;
      }
      return !i4 || f4;
    };
  }
  return f3.__;
}
function A2(n3, u3) {
  var i3 = y2(t3++, 3);
  !a2.__s && E2(i3.__H, u3) && (i3.__P = true, i3.__ = n3, i3.u = u3, r2.__H.__h.push(i3));
}
function F2(n3, u3) {
  var i3 = y2(t3++, 4);
  !a2.__s && E2(i3.__H, u3) && (i3.__P = false, i3.__ = n3, i3.u = u3, r2.__h.push(i3));
}
function T2(n3) {
  return f2 = 5, w2(function() {
    return { current: n3 };
  }, []);
}
function w2(n3, r3) {
  var u3 = y2(t3++, 7);
  return E2(u3.__H, r3) && (u3.__ = n3(), u3.__H = r3), u3.__;
}
function j2(n3) {
  var u3 = r2.context[n3.__c], i3 = y2(t3++, 9);
  return i3.c = n3, u3 ? (null == i3.__ && (i3.__ = true, u3.sub(r2)), u3.props.value) : n3.__;
}
function g2() {
  var n3;
  do {
    for (; n3 = e2.shift(); ) try {
      C2(n3);
    } catch (t5) {
      a2.__e(t5, { __: (n3 = n3.__P) && n3.__v });
    }
    for (; n3 = c2.shift(); ) {
      var t4 = n3.__H;
      if (n3.__P && t4) try {
        t4.__h.some(C2), t4.__h.some(D2), t4.__h = [];
      } catch (r3) {
        t4.__h = [], a2.__e(r3, n3.__v);
      }
    }
  } while (e2.length);
}
a2.__b = function(n3) {
  r2 = null, v2 && v2(n3);
}, a2.__ = function(n3, t4) {
  n3 && t4.__k && t4.__k.__m && (n3.__m = t4.__k.__m), p2 && p2(n3, t4);
}, a2.__r = function(n3) {
  l2 && l2(n3), t3 = 0;
  var i3 = (r2 = n3.__c).__H;
  i3 && (u2 == r2 ? r2.__h = [] : (i3.__h.some(C2), i3.__h.some(D2), t3 = 0), i3.__h = [], i3.__.some(function(n4) {
    n4.__N && (n4.__ = n4.__N), n4.u = n4.__N = void 0;
  })), u2 = r2;
}, a2.diffed = function(n3) {
  m3 && m3(n3);
  var t4 = n3.__c;
  t4 && t4.__H && (t4.__H.__h.length && B2(c2.push(t4)), t4.__H.__.some(function(n4) {
    n4.u && (n4.__H = n4.u);
  })), u2 = r2 = null;
}, a2.__c = function(n3, t4) {
  t4.some(function(n4) {
    try {
      n4.__h.some(C2), n4.__h = n4.__h.filter(function(n5) {
        return !n5.__ || D2(n5);
      });
    } catch (t5) {
      n4.__h = [function() {
        throw t5;
      }];
    }
  }), h2 && h2(n3, t4);
}, a2.unmount = function(n3) {
  s2 && s2(n3);
  var t4, r3, u3 = n3.__c;
  u3 && u3.__H && (u3.__H.__.some(function(u4) {
    try {
      if (u4.__P && u4.__c) {
        if (void 0 === r3) {
          for (r3 = n3.__; r3 && (!r3.__c || !r3.__c.__P); ) r3 = r3.__;
          r3 = r3 && r3.__c;
        }
        u4.__P = r3, B2(e2.push(u4));
      } else C2(u4);
    } catch (n4) {
      t4 = n4;
    }
  }), u3.__H = void 0, t4 && a2.__e(t4, u3.__v));
};
var k2 = "function" == typeof requestAnimationFrame;
function z2(n3) {
  var t4, r3 = function() {
    clearTimeout(u3), k2 && cancelAnimationFrame(t4), setTimeout(n3);
  }, u3 = setTimeout(r3, 35);
  k2 && (t4 = requestAnimationFrame(r3));
}
function B2(n3) {
  1 != n3 && i2 == a2.requestAnimationFrame || ((i2 = a2.requestAnimationFrame) || z2)(g2);
}
function C2(n3) {
  var t4 = r2, u3 = n3.__c;
  "function" == typeof u3 && (n3.__c = void 0, u3()), r2 = t4;
}
function D2(n3) {
  var t4 = r2;
  n3.__c = n3.__(), r2 = t4;
}
function E2(n3, t4) {
  return !n3 || n3.length != t4.length || t4.some(function(t5, r3) {
    return !o2(t5, n3[r3]);
  });
}
function G2(n3, t4) {
  return "function" == typeof t4 ? t4(n3) : t4;
}

// src/hooks.js
var LinkContext = U(
  /** @type {Link} */
  /** @type {unknown} */
  null
);
var PartContext = U("");
var WidthContext = U(1200);
var useLink = () => j2(LinkContext);
function useRedraw() {
  return (
    /** @type {() => void} */
    _2((count) => count + 1, 0)[1]
  );
}
function useTraits(names) {
  const { model } = useLink();
  const redraw = useRedraw();
  F2(() => {
    for (const name of names) model.on(`change:${name}`, redraw);
    return () => names.forEach((name) => model.off(`change:${name}`, redraw));
  }, [model, names.join(" ")]);
  return (name) => model.get(name);
}
var useTrait = (name) => useTraits([name])(name);
function useWatchedLink() {
  const link = useLink();
  const redraw = useRedraw();
  A2(() => link.watch(redraw), [link]);
  return link;
}
function useAct() {
  const link = useLink();
  const part = j2(PartContext);
  return (action, value) => link.act(action.includes(".") ? action : `${part}.${action}`, value);
}
function useOwned(told) {
  const link = useWatchedLink();
  const [own, setOwn] = d2(
    /** @type {{ value: T, number: number } | null} */
    null
  );
  const isOwn = own !== null && own.number > link.heard;
  return [isOwn ? own.value : told, (value, number) => setOwn({ value, number })];
}
var useMood = () => useWatchedLink().mood;
function useMessages(listen) {
  const link = useLink();
  const latest = T2(listen);
  latest.current = listen;
  A2(() => link.listen((message) => latest.current(message)), [link]);
}
function useWidth(ref, first) {
  const [width, setWidth] = d2(first);
  F2(() => {
    const element = ref.current;
    if (!element) return void 0;
    const measure = () => element.clientWidth && setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
function useDebounced(work, pauseMs) {
  const timer = T2(
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    void 0
  );
  const latest = T2(work);
  latest.current = work;
  A2(() => () => clearTimeout(timer.current), []);
  const stop = () => clearTimeout(timer.current);
  const later = (...args) => {
    stop();
    timer.current = setTimeout(() => latest.current(...args), pauseMs);
  };
  return { later, stop };
}

// src/link.js
var BUSY_MS = 8e3;
var WAITING_MS = 300;
var Link = class {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.view = Math.random().toString(36).slice(2, 10);
    this.sent = 0;
    this.heard = 0;
    this.mood = "";
    this.timers = [];
    this.watchers = /* @__PURE__ */ new Set();
    this.listeners = /* @__PURE__ */ new Set();
    this.events = /** @type {[string, (...args: any[]) => void][]} */
    [
      ["change:heard", () => this.hear()],
      ["msg:custom", (message) => this.receive(message)],
      ["comm_live_update", () => this.lose()]
    ];
    for (const [name, hear] of this.events) model.on(name, hear);
  }
  close() {
    this.timers.forEach(clearTimeout);
    for (const [name, hear] of this.events) this.model.off(name, hear);
  }
  /**
   * Report what a person has done.
   * @param {string} action
   * @param {unknown} [value]
   * @returns {number} the act's number
   */
  act(action, value = {}) {
    this.sent += 1;
    try {
      this.model.send({ kind: "act", action, value, view: this.view, number: this.sent });
      this.wait();
    } catch {
      this.lose();
    }
    return this.sent;
  }
  /**
   * Be told when `heard` or the mood has changed.
   * @param {() => void} watch
   */
  watch(watch) {
    this.watchers.add(watch);
    return () => void this.watchers.delete(watch);
  }
  /**
   * Be told of the kernel's messages.
   * @param {(message: Message) => void} listen
   */
  listen(listen) {
    this.listeners.add(listen);
    return () => void this.listeners.delete(listen);
  }
  /** @param {Message} message */
  receive(message) {
    if (this.mood === "lost") this.feel("");
    if (message.view && message.view !== this.view) return;
    for (const listen of this.listeners) listen(message);
  }
  hear() {
    const { view, number } = this.model.get("heard") ?? {};
    if (view !== this.view) return;
    this.heard = Math.max(this.heard, number);
    this.timers.forEach(clearTimeout);
    this.timers = [];
    this.mood = "";
    if (this.heard < this.sent) this.wait();
    this.tell();
  }
  wait() {
    if (this.timers.length || this.mood === "lost") return;
    this.timers = [
      setTimeout(() => this.feel("waiting"), WAITING_MS),
      setTimeout(() => this.feel("busy"), BUSY_MS)
    ];
  }
  lose() {
    this.timers.forEach(clearTimeout);
    this.feel("lost");
  }
  /** @param {Mood} mood */
  feel(mood) {
    this.mood = mood;
    this.tell();
  }
  tell() {
    for (const watch of this.watchers) watch();
  }
};

// src/saving.js
function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1e4);
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
function fileName(name, ending) {
  const plain2 = (name ?? "").replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80);
  return `${plain2 || "icestats"}.${ending}`;
}

// src/buttons.js
var SAID_MS = 1500;
function Tool({ label, press, isOn, name = "", children }) {
  return m2`<button type="button" class=${`icestats-tool ${name}`} title=${label} aria-label=${label} aria-pressed=${isOn} onClick=${press}>
    ${children}</button>`;
}
function CopyButton({ text, label, children }) {
  const [isCopied, setCopied] = d2(false);
  A2(() => {
    if (!isCopied) return void 0;
    const timer = setTimeout(() => setCopied(false), SAID_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const press = (event) => {
    event.stopPropagation();
    copy(text()).then(() => setCopied(true));
  };
  return m2`<button type="button" class="icestats-tool" title=${label} onClick=${press}>
    <span aria-live="polite">${isCopied ? "Copied" : children}</span></button>`;
}

// src/figure_file.js
var SCALE = 2;
var VARIABLE = /var\((--[\w-]+)(?:,[^()]*(?:\([^()]*\)[^()]*)*)?\)/g;
function standAlone(svg, place) {
  const style = getComputedStyle(place);
  const whole = svg.replace(VARIABLE, (text, name) => style.getPropertyValue(name).trim() || text);
  const back = style.getPropertyValue("--icestats-back").trim() || "#ffffff";
  return whole.replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${back}"/>`);
}
function saveSvg(svg, place, name) {
  save(fileName(name, "svg"), new Blob([standAlone(svg, place)], { type: "image/svg+xml" }));
}
async function savePng(svg, place, name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standAlone(svg, place))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * SCALE, image.height * SCALE];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(fileName(name, "png"), blob));
}

// src/figure_tools.js
function FigureTools({ block, act, canvas, isZooming, setZooming }) {
  const { svg, name = block.id } = block;
  const save2 = (saveAs) => () => canvas.current && void saveAs(svg, canvas.current, name);
  return m2`<figcaption>
    <span class="icestats-tools">
      ${block.typed && m2`<${TypedRange} typed=${block.typed} label=${block.label} act=${act} />`}
      ${typeof block.log === "boolean" && m2`<${LogSwitch} log=${block.log} act=${act} />`}
      ${block.zoom && m2`<${Tool} label="Zoom: then drag over the figure" isOn=${isZooming} press=${() => setZooming(!isZooming)}>Zoom<//>`}
      ${block.zoomed && m2`<${Tool} label="Show everything again" press=${() => act("reset")}>Reset<//>`}
      <${Tool} label="Save as PNG" press=${save2(savePng)}>PNG<//>
      <${Tool} label="Save as SVG" press=${save2(saveSvg)}>SVG<//>
    </span>
  </figcaption>`;
}
function TypedRange({ typed, label, act }) {
  const [range, setRange] = useOwned(typed);
  const isTyped = T2(false);
  const send = () => {
    isTyped.current = false;
    setRange(range, act("range", range));
  };
  const type = (change) => {
    isTyped.current = true;
    setRange({ ...range, ...change }, Infinity);
  };
  const enter = () => isTyped.current || setRange(range, Infinity);
  const leave = (event) => {
    if (event.currentTarget.contains(event.relatedTarget)) return;
    if (isTyped.current) send();
    else setRange(range, 0);
  };
  const field = (end, word) => m2`<input class="icestats-input" size="9" aria-label=${`${word}: ${label}`} placeholder=${word.toLowerCase()} value=${range[end]}
      onInput=${(event) => type({ [end]: event.target.value })} />`;
  return m2`<form class="icestats-range" onSubmit=${(event) => (event.preventDefault(), send())} onFocusIn=${enter} onFocusOut=${leave}
    onKeyDown=${(event) => event.stopPropagation()}>
    ${field("lower", "From")} – ${field("upper", "To")}
    <button type="submit" class="icestats-tool" title="Show this range">Go</button>
  </form>`;
}
function LogSwitch({ log, act }) {
  const [isOn, setOn] = useOwned(log);
  const change = () => setOn(!isOn, act("log", { on: !isOn }));
  return m2`<label class="icestats-check"><input type="checkbox" checked=${isOn} onChange=${change} /> log counts</label>`;
}

// src/picture.js
var FORBIDDEN = "script, foreignObject, iframe, object, embed, animate, set, use[href]:not([href^='#'])";
function parseSvg(svg) {
  const template = document.createElement("template");
  template.innerHTML = svg;
  const root = (
    /** @type {SVGSVGElement | null} */
    template.content.querySelector("svg")
  );
  if (!root) return null;
  root.setAttribute("role", "none");
  for (const element of root.querySelectorAll(FORBIDDEN)) element.remove();
  for (const element of [root, ...root.querySelectorAll("*")]) {
    for (const { name, value } of [...element.attributes]) {
      if (/^on/i.test(name) || /href$/i.test(name) && !value.startsWith("#")) element.removeAttribute(name);
    }
  }
  return root;
}
function Picture({ svg, label }) {
  const box = T2(
    /** @type {HTMLElement | null} */
    null
  );
  F2(() => {
    const root = parseSvg(svg);
    box.current?.replaceChildren(...root ? [root] : []);
  }, [svg]);
  return m2`<span ref=${box} class="icestats-picture" role="img" aria-label=${label}></span>`;
}

// src/plot_area.js
var clamp = (value) => Math.max(0, Math.min(1, value));
var round = (value) => Math.round(value * 1e6) / 1e6;
function findPlot(plots, { x: x2, y: y3 }) {
  return plots.find((plot) => x2 >= plot.x && x2 <= plot.x + plot.width && y3 >= plot.y && y3 <= plot.y + plot.height);
}
function fractions(plot, one, other, isFlat) {
  const along = (value, start, size) => round(clamp((value - start) / size));
  const x2 = [one.x, other.x].map((value) => along(value, plot.x, plot.width)).sort((a3, b) => a3 - b);
  const y3 = [one.y, other.y].map((value) => along(value, plot.y, plot.height)).sort((a3, b) => a3 - b);
  return { plot: plot.plot, x: x2, y: isFlat ? [0, 1] : y3 };
}
var STEPS = (
  /** @type {Record<string, [number, number]>} */
  {
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, -1],
    ArrowDown: [0, 1]
  }
);
function nextMark(boxes, from, key) {
  const [right, down] = STEPS[key];
  const middle = (box) => ({ x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 });
  const start = middle(boxes[from]);
  let [best, least] = [from, Infinity];
  boxes.forEach((box, place) => {
    const { x: x2, y: y3 } = middle(box);
    const ahead = right * (x2 - start.x) + down * (y3 - start.y);
    const aside = Math.abs(right ? y3 - start.y : x2 - start.x);
    const distance = ahead + 3 * aside;
    if (place !== from && ahead > 0.5 && distance < least) [best, least] = [place, distance];
  });
  return best;
}

// src/figure.js
var DRAG_PIXELS = 4;
function Figure({ block }) {
  const { marks = "" } = block;
  const link = useLink();
  const part = j2(PartContext);
  const name = `${part}.${block.id}`;
  const act = (verb, value = {}) => link.act(`${name}.${verb}`, value);
  const canvas = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const [tip, setTip] = d2(
    /** @type {Tip | null} */
    null
  );
  const [isZooming, setZooming] = d2(false);
  const [sent, setSent] = useOwned(
    /** @type {Drag | null} */
    null
  );
  const picture = usePicture(canvas, block.svg);
  const showTip = (mark, at) => {
    const text = mark?.getAttribute("data-tip");
    if (!text || !canvas.current) return setTip(null);
    const { left, top } = canvas.current.getBoundingClientRect();
    setTip({ text, x: at.clientX - left, y: at.clientY - top });
  };
  const choose = (mark, event) => {
    picture.focused.current = mark.dataset.key ?? "";
    act("choose", { key: mark.dataset.key, add: event.ctrlKey || event.shiftKey || event.metaKey });
  };
  const send = (drag) => {
    const { plot, start, end, isFlat, isZoom } = drag;
    setSent(drag, act(isZoom ? "zoom" : "mark", fractions(plot, start, end, isFlat)));
    setZooming(false);
  };
  const pointer = usePointer({ picture, canvas, isMarkable: marks !== "", isFlat: marks !== "xy", isZooming, send, choose, showTip });
  const onKeyDown = useKeys({ picture, marks, send, choose, stop: pointer.stop, clear: () => act("clear") });
  const onFocusIn = (event) => {
    const mark = (
      /** @type {Element} */
      event.target
    );
    if (!mark.matches?.(":focus-visible")) return;
    const { left, right, bottom } = mark.getBoundingClientRect();
    showTip(mark, { clientX: (left + right) / 2, clientY: bottom });
  };
  const dragged = pointer.drag ?? sent;
  return m2`<figure class=${`icestats-drawing${isZooming ? " is-zooming" : ""}${marks ? " is-markable" : ""}`} aria-label=${block.label}>
    <div ref=${canvas} class="icestats-canvas" data-figure=${name} role="group" aria-label=${block.label} ...${pointer.handlers}
      onDblClick=${() => block.zoomed && act("reset")}
      onKeyDown=${onKeyDown} onFocusIn=${onFocusIn} onFocusOut=${() => setTip(null)}></div>
    ${dragged && m2`<${DragBox} drag=${dragged} scale=${picture.scale()} />`}
    ${tip && m2`<${TipBox} tip=${tip} within=${canvas.current?.clientWidth ?? 0} />`}
    <${FigureTools} block=${block} act=${act} canvas=${canvas} isZooming=${isZooming} setZooming=${setZooming} />
  </figure>`;
}
function usePicture(canvas, svg) {
  const root = T2(
    /** @type {SVGSVGElement | null} */
    null
  );
  const focused = T2("");
  const findMarks = () => (
    /** @type {SVGElement[]} */
    [...root.current?.querySelectorAll("[data-key]") ?? []]
  );
  F2(() => {
    const active = (
      /** @type {Document | undefined} */
      canvas.current?.getRootNode()?.activeElement ?? null
    );
    const hadFocus = canvas.current?.contains(active);
    root.current = parseSvg(svg);
    canvas.current?.replaceChildren(...root.current ? [root.current] : []);
    if (root.current) takeTitles(root.current);
    const stop = findMarks().find((mark) => mark.dataset.key === focused.current) ?? findMarks()[0];
    stop?.setAttribute("tabindex", "0");
    if (hadFocus) stop?.focus({ preventScroll: true });
  }, [svg]);
  const scale = () => {
    const width = root.current?.viewBox?.baseVal?.width || Number(root.current?.getAttribute("width")) || 1;
    return (root.current?.getBoundingClientRect().width || width) / width;
  };
  const pointAt = (x2, y3) => {
    const { left = 0, top = 0 } = root.current?.getBoundingClientRect() ?? {};
    return { x: (x2 - left) / scale(), y: (y3 - top) / scale() };
  };
  const plots = () => [...root.current?.querySelectorAll("g.plot") ?? []].map((group) => {
    const { plot = "", x: x2, y: y3, width, height } = (
      /** @type {SVGElement} */
      group.dataset
    );
    return { plot, x: Number(x2), y: Number(y3), width: Number(width), height: Number(height) };
  });
  return { findMarks, focused, plots, pointAt, scale };
}
function takeTitles(root) {
  for (const title of root.querySelectorAll("title")) {
    title.parentNode.setAttribute("data-tip", title.textContent ?? "");
    title.remove();
  }
  const marks = root.querySelectorAll("[data-key]");
  if (marks.length) root.setAttribute("role", "group");
  for (const mark of marks) {
    mark.setAttribute("role", "button");
    mark.setAttribute("tabindex", "-1");
    mark.setAttribute("aria-label", mark.getAttribute("data-tip") ?? mark.getAttribute("data-key") ?? "");
  }
}
function usePointer({ picture, canvas, isMarkable, isFlat, isZooming, send, choose, showTip }) {
  const [drag, setDrag] = d2(
    /** @type {Drag | null} */
    null
  );
  const pressed = T2(
    /** @type {{ mark: SVGElement | null, plot: Plot | undefined, start: Point } | null} */
    null
  );
  const markOf = (event) => (
    /** @type {SVGElement | null} */
    /** @type {Element} */
    event.target.closest("[data-key]")
  );
  const stop = () => {
    const was = drag !== null;
    pressed.current = null;
    setDrag(null);
    return was;
  };
  const onPointerDown = (event) => {
    if (event.button !== 0) return;
    const start = picture.pointAt(event.clientX, event.clientY);
    const plot = isMarkable || isZooming ? findPlot(picture.plots(), start) : void 0;
    pressed.current = { mark: markOf(event), start, plot };
    if (!plot) return;
    event.preventDefault();
    canvas.current?.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event) => {
    const { start, plot } = pressed.current ?? {};
    if (!start || !plot) return showTip(
      /** @type {Element} */
      event.target.closest("[data-tip]"),
      event
    );
    const end = picture.pointAt(event.clientX, event.clientY);
    const isFar = Math.hypot(end.x - start.x, end.y - start.y) * picture.scale() >= DRAG_PIXELS;
    if (drag || isFar) setDrag({ plot, start, end, isFlat, isZoom: isZooming });
    showTip(null, event);
  };
  const onPointerUp = (event) => {
    const mark = pressed.current?.mark;
    if (drag) send({ ...drag, end: picture.pointAt(event.clientX, event.clientY) });
    else if (mark) choose(mark, event);
    stop();
  };
  const onClick = (event) => {
    const mark = markOf(event);
    if (event.detail === 0 && mark) choose(mark, event);
  };
  const onPointerLeave = (event) => showTip(null, event);
  return { drag, stop, handlers: { onPointerDown, onPointerMove, onPointerUp, onPointerCancel: stop, onPointerLeave, onClick } };
}
function useKeys({ picture, marks, send, choose, stop, clear }) {
  const anchor = T2(-1);
  const walk = (all, at, event) => {
    const boxes = all.map((mark) => mark.getBoundingClientRect());
    const next = nextMark(boxes, at, event.key);
    all[at].setAttribute("tabindex", "-1");
    all[next].setAttribute("tabindex", "0");
    all[next].focus({ preventScroll: true });
    picture.focused.current = all[next].dataset.key ?? "";
    if (!event.shiftKey) anchor.current = -1;
    else if (anchor.current < 0) anchor.current = at;
    if (event.shiftKey && marks) markBoth(boxes[Math.min(anchor.current, all.length - 1)], boxes[next]);
  };
  const markBoth = (one, other) => {
    const start = picture.pointAt(Math.min(one.left, other.left), Math.min(one.top, other.top));
    const end = picture.pointAt(Math.max(one.right, other.right), Math.max(one.bottom, other.bottom));
    const plot = findPlot(picture.plots(), { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 });
    if (plot) send({ plot, start, end, isFlat: marks !== "xy", isZoom: false });
  };
  return (event) => {
    const all = picture.findMarks();
    const at = all.indexOf(
      /** @type {SVGElement} */
      event.target
    );
    if (event.key === "Escape") {
      if (stop()) event.stopPropagation();
      else if (marks && at >= 0) clear();
      return;
    } else if (at >= 0 && (event.key === "Enter" || event.key === " ")) {
      choose(all[at], event);
    } else if (at >= 0 && event.key.startsWith("Arrow")) {
      walk(all, at, event);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
}
function TipBox({ tip: { text, x: x2, y: y3 }, within }) {
  const side = x2 > within / 2 ? { right: `${within - x2 + 10}px` } : { left: `${x2 + 10}px` };
  return m2`<div class="icestats-tip" role="status" style=${{ top: `${y3 + 14}px`, ...side }}>${text}</div>`;
}
function DragBox({ drag: { plot, start, end, isFlat, isZoom }, scale }) {
  const { x: x2, y: y3 } = fractions(plot, start, end, isFlat);
  const pixels = (from, size) => `${(from + size) * scale}px`;
  const style = {
    left: pixels(plot.x, x2[0] * plot.width),
    width: pixels(0, (x2[1] - x2[0]) * plot.width),
    top: pixels(plot.y, y3[0] * plot.height),
    height: pixels(0, (y3[1] - y3[0]) * plot.height)
  };
  return m2`<div class=${`icestats-drag${isZoom ? " is-zoom" : ""}`} style=${style}></div>`;
}

// src/popover.js
var GAP = 4;
function Popover({ anchor, label, name = "", close, children }) {
  const box = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const latest = T2(close);
  latest.current = close;
  F2(() => {
    const element = (
      /** @type {HTMLElement} */
      box.current
    );
    const root = (
      /** @type {Document | ShadowRoot} */
      element.getRootNode()
    );
    const before = (
      /** @type {HTMLElement | null} */
      root.activeElement
    );
    element.showPopover?.();
    const { width, height } = element.getBoundingClientRect();
    const isAbove = anchor.bottom + GAP + height > innerHeight && anchor.top > innerHeight - anchor.bottom;
    const top = isAbove ? anchor.top - GAP - height : anchor.bottom + GAP;
    element.style.top = `${Math.max(GAP, top)}px`;
    element.style.left = `${Math.max(GAP, Math.min(anchor.left, innerWidth - width - GAP))}px`;
    element.querySelector("input, button, select")?.focus({ preventScroll: true });
    return () => before?.focus?.({ preventScroll: true });
  }, []);
  A2(() => {
    const onPress = (event) => {
      if (!event.composedPath().includes(
        /** @type {HTMLElement} */
        box.current
      )) latest.current();
    };
    document.addEventListener("pointerdown", onPress, true);
    return () => document.removeEventListener("pointerdown", onPress, true);
  }, []);
  const onKey = (event) => {
    event.stopPropagation();
    if (event.key === "Escape") latest.current();
  };
  return m2`<div ref=${box} popover="manual" class=${`icestats-popover ${name}`} role="dialog" aria-label=${label} tabindex="-1"
    onKeyDown=${onKey}>${children}</div>`;
}

// src/form.js
var TYPING_MS = 400;
var MOST_SEGMENTS = 5;
var LONGEST_SEGMENTS = 60;
function Form({ fields }) {
  return m2`<div class="icestats-form">
    ${fields.map((field) => m2`<${FormField} key=${field.name} field=${field} />`)}
  </div>`;
}
var KINDS = { choice: Choice, toggle: Toggle, number: Typed, text: Typed, button: Button, progress: Progress, many: Many };
function FormField({ field }) {
  const send = useAct();
  const [value, setValue] = useOwned(field.value);
  const Kind = KINDS[field.is];
  if (!Kind) return null;
  const change = (changed) => setValue(changed, send(field.action || field.name, changed));
  const hold = (typed) => setValue(typed, Infinity);
  return m2`<${Kind} field=${field} value=${value} change=${change} hold=${hold} />`;
}
var Label = ({ text }) => text ? m2`<span class="icestats-label">${text}</span>` : null;
function Choice(props) {
  const { options = [] } = props.field;
  const length = options.reduce((sum, { text }) => sum + text.length, 0);
  return options.length <= MOST_SEGMENTS && length <= LONGEST_SEGMENTS ? Segments(props) : Select(props);
}
function Select({ field: { options = [], label, about }, value, change }) {
  return m2`<label class="icestats-field" title=${about}>
    <${Label} text=${label} />
    <select class="icestats-input" onChange=${(event) => change(event.target.value)}>
      ${options.map((option) => m2`<option value=${option.value} selected=${option.value === value}>${option.text}</option>`)}
    </select>
  </label>`;
}
function Segments({ field: { options = [], label, about, name }, value, change }) {
  const group = `icestats-${useLink().view}-${j2(PartContext)}-${name}`;
  return m2`<div class="icestats-field" role="radiogroup" aria-label=${label} title=${about}>
    <${Label} text=${label} />
    <span class="icestats-segments">
      ${options.map((option) => {
    const isOn = option.value === value;
    return m2`<label key=${option.value} class=${isOn ? "is-on" : ""}>
          <input type="radio" name=${group} value=${option.value} checked=${isOn} onChange=${() => change(option.value)} />
          ${option.text}
        </label>`;
  })}
    </span>
  </div>`;
}
function Toggle({ field: { label, about }, value, change }) {
  return m2`<label class="icestats-check" title=${about}>
    <input type="checkbox" checked=${Boolean(value)} onChange=${() => change(!value)} />
    ${label}
  </label>`;
}
function Typed({ field, value, change, hold }) {
  const parse = (text) => {
    if (field.is === "text") return text;
    return text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text);
  };
  const { later, stop } = useDebounced((text) => change(parse(text)), TYPING_MS);
  const onKey = (event) => {
    event.stopPropagation();
    if (event.key !== "Enter") return;
    stop();
    change(parse(
      /** @type {HTMLInputElement} */
      event.target.value
    ));
  };
  const onInput = (event) => {
    hold(event.target.value);
    later(event.target.value);
  };
  return m2`<label class="icestats-field" title=${field.about}>
    <${Label} text=${field.label} />
    <input class="icestats-input" type=${field.is} value=${value ?? ""} min=${field.least} max=${field.most}
      onKeyDown=${onKey} onInput=${onInput} />
  </label>`;
}
function Button({ field }) {
  const send = useAct();
  const press = () => send(field.action || field.name, field.value ?? {});
  return m2`<button type="button" class=${`icestats-button is-${field.tone || "plain"}`} disabled=${field.disabled}
    title=${field.about} onClick=${press}>${field.label}</button>`;
}
function Progress({ field: { value, most = 1, label } }) {
  return m2`<label class="icestats-field">
    <progress value=${value ?? void 0} max=${most} aria-label=${label}></progress>
    <span>${label}</span>
  </label>`;
}
function Checks({ options, chosen, change }) {
  const toggle = (one) => change(options.map(({ value }) => value).filter((other) => other === one !== chosen.includes(other)));
  return options.map(({ value, text, about }) => m2`<label key=${value} title=${about}>
    <input type="checkbox" checked=${chosen.includes(value)} onChange=${() => toggle(value)} /> ${text}</label>`);
}
function Many({ field: { options = [], label }, value, change }) {
  const [anchor, setAnchor] = d2(
    /** @type {DOMRect | null} */
    null
  );
  const chosen = (
    /** @type {string[]} */
    value ?? []
  );
  const all = options.map((option) => option.value);
  const open = (event) => setAnchor(event.currentTarget.getBoundingClientRect());
  return m2`<div class="icestats-field">
    <${Label} text=${label} />
    <button type="button" class="icestats-button is-plain" aria-haspopup="dialog" onClick=${open}>
      ${chosen.length === all.length ? "all" : `${chosen.length} of ${all.length}`} ▾
    </button>
    ${anchor && m2`<${Popover} anchor=${anchor} label=${label} close=${() => setAnchor(null)}>
      <div class="icestats-checks">
        <span>
          <button type="button" class="icestats-tool" onClick=${() => change(all)}>All</button>
          <button type="button" class="icestats-tool" onClick=${() => change([])}>None</button>
        </span>
        <${Checks} options=${options} chosen=${chosen} change=${change} />
      </div>
    <//>`}
  </div>`;
}

// src/grid_bars.js
var SEARCH_MS = 200;
function GridBar({ block, act, seen, isCard, sortBy }) {
  if (!block.search && !isCard) return null;
  const sorted = block.sort?.column ?? "";
  const names = seen.map(({ column }) => column).filter((column) => column.sortable !== false);
  return m2`<div class="icestats-grid-bar">
    ${block.search && m2`<${Search} search=${block.search} label=${block.label} act=${act} />`}
    ${isCard && m2`<select class="icestats-input" aria-label=${`Sort ${block.label}`}
      onChange=${(event) => sortBy(event.target.value)}>
      ${!sorted && m2`<option value="" selected>Sort by …</option>`}
      ${names.map(({ name, title }) => m2`<option value=${name} selected=${name === sorted}>Sort by ${title}</option>`)}
    </select>`}
  </div>`;
}
function Search({ search, label, act }) {
  const [text, setText] = useOwned(search.text);
  const { later } = useDebounced((typed) => setText(typed, act("search", { text: typed })), SEARCH_MS);
  const onInput = (event) => {
    setText(event.target.value, Infinity);
    later(event.target.value);
  };
  return m2`<input type="search" class="icestats-input" placeholder=${search.placeholder} aria-label=${`Search ${label}`}
    value=${text} onInput=${onInput} onKeyDown=${(event) => event.stopPropagation()} />`;
}
function GridFoot({ block, rowCount, act, copyText: copyText2, columns }) {
  const [anchor, setAnchor] = d2(
    /** @type {DOMRect | null} */
    null
  );
  const count = rowCount ? `${rowCount.toLocaleString("en")} ${rowCount === 1 ? "row" : "rows"}` : "";
  const open = (event) => setAnchor(event.currentTarget.getBoundingClientRect());
  const options = block.columns.map(({ name, title, about }) => ({ value: name, text: title, about }));
  const choose = (names) => names.length && columns.choose(names);
  return m2`<div class="icestats-grid-foot">
    <span class="icestats-note" role="status">${block.note || count}</span>
    <span class="icestats-tools">
      <${Tool} label="Choose columns" press=${open}>Columns<//>
      <${CopyButton} label="Copy rows, to paste into a spreadsheet" text=${copyText2}>Copy<//>
      <${Tool} label="Save all rows as CSV" press=${() => act("csv", {})}>CSV<//>
    </span>
    ${anchor && m2`<${Popover} anchor=${anchor} label="Columns" close=${() => setAnchor(null)}>
      <div class="icestats-checks"><${Checks} options=${options} chosen=${columns.shown} change=${choose} /></div>
    <//>`}
  </div>`;
}
function OpenedCells({ opened: { anchor, label, texts }, close }) {
  const copied = texts.map(([title, text]) => texts.length > 1 ? `${title}	${text}` : text).join("\n");
  return m2`<${Popover} anchor=${anchor} label=${label} close=${close}>
    ${texts.map(([title, text]) => m2`<p key=${title}><small>${title}</small>${text}</p>`)}
    <${CopyButton} label="Copy the text" text=${() => copied}>Copy<//>
  <//>`;
}

// src/middle.js
var [LEAST, SHORTEST_START] = [16, 5];
var [SHORTEST_TAIL, LONGEST_TAIL, LONGEST_OF_LONG] = [10, 16, 20];
var LONG = 40;
function splitMiddle(text) {
  const signs = [...text];
  if (signs.length < LEAST || /^\d{4}-\d\d-\d\d/.test(text)) return [text, ""];
  const most = Math.min(signs.length > LONG ? LONGEST_OF_LONG : LONGEST_TAIL, signs.length - SHORTEST_START);
  let tail = SHORTEST_TAIL;
  for (let length = SHORTEST_TAIL; length <= most; length += 1) {
    if (/[\s._/=-]/.test(signs[signs.length - length - 1])) tail = length;
  }
  return [signs.slice(0, -tail).join(""), signs.slice(-tail).join("")];
}

// src/unbroken.js
var LITERALS = /(?<![^\s(=<>,])('[^'\n]{1,40}')/;
function unbroken(text) {
  if (!LITERALS.test(text)) return text;
  return text.split(LITERALS).map((part, place) => place % 2 ? m2`<span class="icestats-unbroken">${part}</span>` : part);
}

// src/grid_cell.js
var kindClass = (kind = "") => (kind.match(/\w+/g) ?? []).map((word) => ` k-${word}`).join("");
function CellText({ text, isName, wraps }) {
  const [start, end] = isName ? splitMiddle(text) : [text, ""];
  return m2`<span class="icestats-cell-text">
    <span class="icestats-cut">${wraps ? unbroken(start) : start}</span>
    ${end && m2`<span class="icestats-tail">${end}</span>`}
  </span>`;
}
function GridCell({ cell, column, isFirst, isActive, isCut, tree, isCard }) {
  const text = `${cell.t ?? ""}${cell.do ? " +" : ""}`;
  const about = [cell.h ?? text, cell.do].filter(Boolean).join("\n");
  const twisty = { true: "▾", false: "▸", undefined: "" }[String(tree?.open)];
  const name = `icestats-td${cell.s ? " has-two" : ""}${column.align === "end" ? " is-end" : ""}${column.wraps && !isCard ? " is-wrapped" : ""}${kindClass(cell.k)}`;
  const content = m2`${cell.svg && m2`<${Picture} svg=${cell.svg} label=${cell.h ?? ""} />`}
    ${cell.b !== void 0 && m2`<i class="icestats-bar" style=${{ width: `${100 * cell.b}%` }}></i>`}
    ${(text || !cell.svg) && m2`<${CellText} text=${text} isName=${isFirst || cell.k === "code"} wraps=${column.wraps === true} />`}
    ${cell.s && m2`<small>${cell.s}</small>`}`;
  return m2`<div role=${isFirst ? "rowheader" : "gridcell"} class=${name} data-column=${column.name} title=${about}
    style=${tree && { paddingInlineStart: `${6 + 16 * tree.depth}px` }}>
    ${tree && m2`<span class="icestats-twisty" aria-hidden="true">${twisty}</span>`}
    ${isCard && m2`<span class="icestats-card-label">${column.title}</span>`}
    ${cell.a ? m2`<button type="button" class="icestats-cell-button" tabindex=${isActive ? 0 : -1}>${content}</button>` : content}
    ${isCut && m2`<button type="button" class="icestats-more" tabindex="-1" aria-label="Show the whole text">⋯</button>`}
  </div>`;
}
function GridRow({ row, isPending, number, top, height, columns, isTree, isSelected, isActive, isCard, cut }) {
  const name = `icestats-tr${isSelected ? " is-selected" : ""}${isPending ? " is-pending" : ""}`;
  const isShown = ({ place }) => !isCard || !row || Boolean(row.cells[place]?.t || row.cells[place]?.svg);
  return m2`<div role="row" class=${name} data-row=${number} tabindex=${isActive ? 0 : -1} aria-rowindex=${number + 2}
    aria-selected=${row ? String(isSelected) : void 0} aria-level=${isTree && row ? (row.depth ?? 0) + 1 : void 0}
    aria-expanded=${isTree && row?.open !== void 0 ? String(row.open) : void 0}
    style=${{ height: `${height}px`, transform: `translateY(${top}px)` }}>
    ${columns.filter(isShown).map(({ column, place }, at) => m2`<${GridCell} key=${column.name} column=${column}
      cell=${row ? row.cells[place] ?? {} : { t: "…" }}
      isFirst=${at === 0} isActive=${isActive} isCard=${isCard && at > 0} isCut=${cut === column.name}
      tree=${isTree && at === 0 && row ? { depth: row.depth ?? 0, open: row.open } : null} />`)}
  </div>`;
}

// src/grid_columns.js
var SIGN_PIXELS = 7.3;
var NAME_SIGN_PIXELS = 7.8;
var WRAPPED_SIGN_PIXELS = 7.6;
var MOST_LINES = 8;
var PADDING_PIXELS = 16;
var LEAST_TEXT_PIXELS = 84;
var LEAST_TEXT_SHARE = 2 / 3;
var leastPixels = (width) => parseInt(/\d+/.exec(width)?.[0] ?? "60", 10);
var sumLeast = (widths) => widths.reduce((sum, width) => sum + leastPixels(width), 0);
var neededPixels = ({ place }, rows, signPixels) => Math.ceil(rows.reduce((most, { cells }) => Math.max(most, cells[place]?.t?.length ?? 0), 0) * signPixels) + PADDING_PIXELS;
var spareText = (pixels) => Math.max(0, pixels - Math.max(LEAST_TEXT_PIXELS, LEAST_TEXT_SHARE * pixels));
function fitTexts(seen, rows) {
  const { width, align, name_pixels: mostPixels } = seen.column;
  if (!mostPixels && align !== "end") return width;
  const needed = mostPixels ? Math.min(mostPixels, neededPixels(seen, rows, NAME_SIGN_PIXELS)) : neededPixels(seen, rows, SIGN_PIXELS);
  return needed > leastPixels(width) ? width.replace(/\d+/, String(needed)) : width;
}
function squeeze(widths, seen, room) {
  const excess = sumLeast(widths) - room;
  if (excess <= 0) return widths;
  const isName = (place) => Boolean(seen[place].column.name_pixels);
  const spare = widths.map((width, place) => seen[place].column.align === "end" || isName(place) ? 0 : spareText(leastPixels(width)));
  const ofNames = widths.map((width, place) => isName(place) ? leastPixels(width) - leastPixels(seen[place].column.width) : 0);
  const [whole, more] = [spare, ofNames].map((pixels) => pixels.reduce((sum, one) => sum + one, 0));
  if (excess > whole + more) return widths;
  const [share, rest] = [Math.min(1, excess / (whole || 1)), Math.max(0, excess - whole) / (more || 1)];
  return widths.map((width, place) => width.replace(/\d+/, String(Math.floor(leastPixels(width) - spare[place] * share - ofNames[place] * rest))));
}
function fitColumns(seen, rows, room, isChosen) {
  const fit = (some) => squeeze(some.map((one) => fitTexts(one, rows)), some, room);
  const [all, fewer] = [fit(seen), seen.filter(({ column }) => !column.roomy)];
  const rest = fit(fewer);
  const cutsNames = seen.some((one, place) => one.column.name_pixels && leastPixels(all[place]) < leastPixels(fitTexts(one, rows)));
  const goes = !isChosen && (sumLeast(all) > room || cutsNames) && sumLeast(rest) <= room;
  return goes ? { seen: fewer, widths: rest } : { seen, widths: all };
}
function countLines(seen, widths, rows, room) {
  const place = seen.findIndex(({ column }) => column.wraps);
  if (place < 0) return 0;
  const shares = widths.map((width) => parseFloat(/([\d.]+)fr/.exec(width)?.[1] ?? "0"));
  const all = shares.reduce((sum, one) => sum + one, 0) || 1;
  const others = sumLeast(widths) - leastPixels(widths[place]);
  const pixels = Math.min(room - others, Math.max(leastPixels(widths[place]), room * shares[place] / all));
  const needed = neededPixels(seen[place], rows, WRAPPED_SIGN_PIXELS) - PADDING_PIXELS;
  return Math.max(1, Math.min(MOST_LINES, Math.ceil(needed / Math.max(1, pixels - PADDING_PIXELS))));
}
function useColumns({ columns, rows }, act, room) {
  const [shown, setShown] = useOwned(columns.filter((column) => !column.hidden).map((column) => column.name));
  const [widths, setWidths] = d2(
    /** @type {Record<string, number>} */
    {}
  );
  const [isChosen, setChosen] = d2(false);
  const wanted = columns.map((column, place) => ({ column, place })).filter(({ column }) => shown.includes(column.name));
  const fitted = fitColumns(wanted, rows, room, isChosen);
  const seen = fitted.seen;
  const own = seen.map((one) => widths[one.column.name] ? `${widths[one.column.name]}px` : fitTexts(one, rows));
  const template = Object.keys(widths).length ? own : fitted.widths;
  return {
    seen,
    shown: seen.map(({ column }) => column.name),
    template: template.join(" "),
    least: sumLeast(template),
    lines: countLines(seen, template, rows, room),
    choose: (names) => (setChosen(true), setShown(names, act("columns", { names }))),
    resize: (name, pixels) => setWidths({ ...widths, [name]: pixels })
  };
}

// src/grid_head.js
var LEAST_PIXELS = 40;
var STEP_PIXELS = 16;
function GridHead({ columns, sort, resize, press }) {
  const line = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const [active, setActive] = d2(0);
  const stop = Math.min(active, columns.length - 1);
  const pixels = (head) => (
    /** @type {HTMLElement} */
    head.offsetWidth
  );
  const onKey = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const heads = line.current?.children;
    if (!step || !heads) return;
    event.preventDefault();
    if (event.altKey) return resize(columns[stop].column.name, Math.max(LEAST_PIXELS, pixels(heads[stop]) + step * STEP_PIXELS));
    const next = Math.max(0, Math.min(columns.length - 1, stop + step));
    setActive(next);
    heads[next].querySelector("button")?.focus();
  };
  const onGrip = (event, name) => {
    event.preventDefault();
    const grip = (
      /** @type {HTMLElement} */
      event.currentTarget
    );
    const start = pixels(
      /** @type {Element} */
      grip.parentElement
    ) - event.clientX;
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (move) => resize(name, Math.max(LEAST_PIXELS, start + move.clientX));
    grip.onpointerup = grip.onpointercancel = () => grip.onpointermove = null;
  };
  return m2`<div role="rowgroup" class="icestats-thead"><div role="row" class="icestats-tr-head" ref=${line} onKeyDown=${onKey}>
    ${columns.map(({ column }, place) => {
    const order = sort?.column === column.name ? sort.descending ? "descending" : "ascending" : "none";
    return m2`<div key=${column.name} role="columnheader" class=${`icestats-th${column.align === "end" ? " is-end" : ""}`}
        aria-sort=${column.sortable === false ? void 0 : order} title=${column.about || column.title}>
        <button type="button" tabindex=${place === stop ? 0 : -1} aria-disabled=${column.sortable === false ? "true" : void 0}
          onFocus=${() => setActive(place)} onClick=${() => column.sortable !== false && press(column.name)}>${column.title}
          ${order !== "none" && m2`<span aria-hidden="true">${order === "descending" ? " ▾" : " ▴"}</span>`}</button>
        <span class="icestats-grip" aria-hidden="true" onPointerDown=${(event) => onGrip(event, column.name)}></span>
      </div>`;
  })}</div></div>`;
}

// src/row_store.js
var AHEAD = 24;
var RowStore = class {
  constructor() {
    this.number = -1;
    this.rows = /* @__PURE__ */ new Map();
    this.before = /* @__PURE__ */ new Map();
    this.row_count = 0;
    this.asked = "";
  }
  /**
   * Take rows in, unless newer ones are here.
   * @param {{ number: number, offset: number, row_count: number, rows: Row[] }} message
   * @returns {boolean} whether they were taken
   */
  take({ number, offset, row_count, rows }) {
    if (number < this.number) return false;
    if (number > this.number) {
      if (this.rows.size) this.before = this.rows;
      this.rows = /* @__PURE__ */ new Map();
      this.number = number;
    }
    this.asked = "";
    this.row_count = row_count;
    rows.forEach((row, place) => this.rows.set(offset + place, row));
    return true;
  }
  /**
   * What to ask for so that rows are seen; null if they are here, or already asked for.
   * @param {number} first
   * @param {number} last the one after the last
   */
  missing(first, last) {
    let isHere = true;
    for (let row = first; row < last; row += 1) isHere &&= this.rows.has(row);
    const wanted = { offset: Math.max(0, first - AHEAD), count: last - Math.max(0, first - AHEAD) + AHEAD };
    const asked = `${wanted.offset} ${wanted.count} ${this.number}`;
    if (isHere || asked === this.asked) return null;
    this.asked = asked;
    return { ...wanted, number: this.number };
  }
  /** Nothing has come: what was asked for is asked for again. */
  forget() {
    this.asked = "";
  }
};

// src/row_window.js
var MOST_PIXELS = 12e6;
function spacePixels({ row_count, row_height }) {
  return Math.min(row_count * row_height, MOST_PIXELS);
}
var isSqueezed = ({ row_count, row_height }) => row_count * row_height > MOST_PIXELS;
var scrollRange = (extent) => Math.max(1, spacePixels(extent) - extent.fits * extent.row_height);
var lastFirst = ({ row_count, fits }) => Math.max(0, row_count - fits);
function seenRows(extent, scrollTop) {
  const { row_count, row_height, fits } = extent;
  const first = isSqueezed(extent) ? Math.round(scrollTop / scrollRange(extent) * lastFirst(extent)) : Math.floor(scrollTop / row_height);
  const clamped = Math.max(0, Math.min(first, row_count - 1));
  return [clamped, Math.min(row_count, clamped + fits + 1)];
}
function rowTop(extent, row, first, scrollTop) {
  return isSqueezed(extent) ? scrollTop + (row - first) * extent.row_height : row * extent.row_height;
}
function scrollTo(extent, row, scrollTop) {
  const [first] = seenRows(extent, scrollTop);
  const { row_height, fits } = extent;
  const goal = row < first || row * row_height < scrollTop ? row : row >= first + fits ? row - fits + 1 : -1;
  if (goal < 0) return null;
  return isSqueezed(extent) ? goal / Math.max(1, lastFirst(extent)) * scrollRange(extent) : goal * row_height;
}

// src/tsv.js
function quote(text) {
  const plain2 = text.replace(/[\t\r\n]+/g, " ");
  return /^[=@]|^[+-](?![\d.,]+(?:[eE][+-]?\d+)?(?: ?[\p{L}%]+)?$)/u.test(plain2.trimStart()) ? `'${plain2}` : plain2;
}
function buildTsv(rows) {
  return rows.map((row) => row.map(quote).join("	")).join("\n");
}

// src/grid.js
var ROW_PIXELS = 26;
var TWO_LINES_PIXELS = 40;
var LINE_PIXELS = 16;
var PADDING_PIXELS2 = 8;
var CARD_LINE_PIXELS = 20;
var CARD_HEAD_PIXELS = 34;
var LEAST_CARDS = 3;
var NARROW_PIXELS = 900;
var FRAME_PIXELS = 2;
var PATIENCE_MS = 5e3;
function Grid({ block }) {
  const part = j2(PartContext);
  const actOfPart = useAct();
  const act = (verb, value) => actOfPart(`${part}.${block.id}.${verb}`, value);
  const store = useRows(block, `${part}.${block.id}`);
  const frame = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const width = useWidth(frame, 800);
  const columns = useColumns(block, act, width - FRAME_PIXELS);
  const scroller = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const [top, setTop] = d2(0);
  const [opened, setOpened] = d2(
    /** @type {Opened | null} */
    null
  );
  const isNarrow = j2(WidthContext) < NARROW_PIXELS;
  const isCard = isNarrow && columns.least > width && columns.seen.length > 2;
  const extent = findExtent(block, store.row_count, isCard ? columns.seen.length : 0, columns.lines);
  const [first, last] = seenRows(extent, top);
  useWindow(store, first, last, act);
  const { selected = [], is_tree: isTree = false } = block;
  const choose = (row) => (
    // What is asked for is what is not seen: asking again before the kernel has answered means the same.
    act("choose", { key: row.key, is_selected: selected.includes(row.key), is_open: row.open === true })
  );
  const toggle = (row, open = row?.open === false) => {
    if (row?.open !== void 0 && row.open !== open) act("open", { key: row.key, open });
  };
  const openCells = (element, row, name = "") => {
    const wanted = block.columns.map((column, place) => ({ column, place })).filter(({ column }) => !name || column.name === name);
    const textOf = ({ h: h3, t: t4 } = (
      /** @type {Cell} */
      {}
    )) => h3 || t4 || "";
    const texts = wanted.map(({ column, place }) => (
      /** @type {[string, string]} */
      [column.title, textOf(row.cells[place])]
    ));
    setOpened({ anchor: element.getBoundingClientRect(), texts, label: name ? texts[0][0] : "The whole row" });
  };
  const scroll = (goal) => {
    if (scroller.current) scroller.current.scrollTop = goal;
    setTop(goal);
  };
  const cursor = useCursor({ frame, store, extent, top, scroll, choose, toggle, openRow: openCells });
  const sortBy = (name) => (act("sort", { column: name }), scroll(0));
  const onClick = (event) => {
    const target = (
      /** @type {Element} */
      event.target
    );
    const cell = (
      /** @type {HTMLElement | null} */
      target.closest("[data-column]")
    );
    if (!cell) return;
    const row = store.rows.get(cursor.goTo(target));
    const name = String(cell.dataset.column);
    const action = row?.cells[block.columns.findIndex((column) => column.name === name)]?.a;
    if (!row) cursor.chooseLater(rowNumber(cell));
    else if (target.closest(".icestats-more")) openCells(cell, row, name);
    else if (action && target.closest(".icestats-cell-button")) actOfPart(action, { key: row.key, column: name });
    else if (target.closest(".icestats-twisty") && row.open !== void 0) toggle(row);
    else if (!getSelection()?.toString()) choose(row);
  };
  const numbers = Array.from({ length: last - first }, (_3, place) => first + place);
  if (cursor.hasFocus && store.row_count && !numbers.includes(cursor.row)) numbers.push(cursor.row);
  const stop = numbers.includes(cursor.row) ? cursor.row : first;
  const isScrolling = store.row_count > extent.fits;
  const [cut, watchCut] = useCut();
  return m2`<div ref=${frame} class=${`icestats-grid${isCard ? " is-cards" : extent.row_height >= TWO_LINES_PIXELS && !columns.lines ? " is-tall" : ""}`}
    style=${{ "--columns": isCard ? "none" : columns.template, "--least": isCard ? "0px" : `${columns.least}px`, "--lines": columns.lines }}>
    <${GridBar} block=${block} act=${act} seen=${columns.seen} isCard=${isCard} sortBy=${sortBy} />
    <div ref=${scroller} class="icestats-scroll" role=${isTree ? "treegrid" : "grid"} aria-label=${block.label}
      aria-rowcount=${store.row_count + 1}
      style=${{ overflowY: isScrolling ? "auto" : "hidden", "--body": `${extent.fits * extent.row_height}px` }}
      onScroll=${(event) => setTop(event.currentTarget.scrollTop)}>
      ${!isCard && m2`<${GridHead} columns=${columns.seen} sort=${block.sort} press=${sortBy} resize=${columns.resize} />`}
      <div role="rowgroup" class="icestats-tbody" style=${{ height: `${spacePixels(extent)}px` }} ...${cursor.handlers} ...${watchCut}
        onClick=${onClick} onDblClick=${(event) => toggle(store.rows.get(rowNumber(event.target)))}>
        ${numbers.map((number) => m2`<${GridRow} key=${number} number=${number} columns=${columns.seen}
          row=${store.rows.get(number) ?? store.before.get(number)} isPending=${!store.rows.has(number)}
          top=${rowTop(extent, number, first, top)} height=${extent.row_height} isTree=${isTree} isCard=${isCard}
          isSelected=${selected.includes(store.rows.get(number)?.key ?? "")} isActive=${number === stop}
          cut=${cut?.row === number ? cut.column : ""} />`)}
      </div>
    </div>
    <${GridFoot} block=${block} rowCount=${store.row_count} act=${act} columns=${columns}
      copyText=${() => copyText(store, selected, columns.seen)} />
    ${opened && m2`<${OpenedCells} opened=${opened} close=${() => setOpened(null)} />`}
  </div>`;
}
function useRows(block, name) {
  const redraw = useRedraw();
  const store = T2(
    /** @type {RowStore | null} */
    null
  );
  const taken = T2(
    /** @type {GridBlock | null} */
    null
  );
  store.current ??= new RowStore();
  const rows = store.current;
  if (taken.current !== block) rows.take(block);
  taken.current = block;
  useMessages((message) => {
    if (message.kind === "rows" && message.grid === name && rows.take(message)) redraw();
  });
  return rows;
}
function useWindow(store, first, last, act) {
  const redraw = useRedraw();
  const retry = useDebounced(() => (store.forget(), redraw()), PATIENCE_MS);
  A2(() => {
    const wanted = store.row_count ? store.missing(first, last) : null;
    if (!wanted) return;
    act("window", wanted);
    retry.later();
  });
}
function findExtent({ row_height = ROW_PIXELS, most_rows = 14, rows }, rowCount, cardColumns, lines) {
  const isTwo = rows.some((row) => row.cells.some((cell) => cell.s));
  const cardPixels = CARD_HEAD_PIXELS + Math.ceil((cardColumns - 1) / 2) * CARD_LINE_PIXELS;
  const height = cardColumns ? cardPixels : Math.max(row_height, isTwo ? TWO_LINES_PIXELS : 0, lines * LINE_PIXELS + PADDING_PIXELS2);
  const isHigh = cardColumns || lines > 1;
  const most = isHigh ? Math.max(LEAST_CARDS, Math.floor(most_rows * ROW_PIXELS / height)) : most_rows;
  return { row_count: rowCount, row_height: height, fits: Math.max(1, Math.min(most, rowCount)) };
}
function useCursor({ frame, store, extent, top, scroll, choose, toggle, openRow }) {
  const [active, setActive] = d2(0);
  const [hasFocus, setHasFocus] = d2(false);
  const focusNext = T2(-1);
  const awaited = T2(
    /** @type {{ row: number, seen: Row | undefined } | null} */
    null
  );
  const chooseLater = (number) => void (awaited.current = { row: number, seen: store.before.get(number) });
  const row = Math.max(0, Math.min(active, extent.row_count - 1));
  const move = (wanted) => {
    const next = Math.max(0, Math.min(extent.row_count - 1, wanted));
    const goal = scrollTo(extent, next, top);
    if (goal !== null) scroll(goal);
    setActive(next);
    focusNext.current = next;
  };
  const chooseHere = () => {
    const here = store.rows.get(row);
    if (here) choose(here);
    else chooseLater(row);
  };
  const onKeyDown = (event) => {
    const line = (
      /** @type {Element} */
      event.target
    );
    if (line.getAttribute("role") !== "row" || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = store.rows.get(row);
    const keys = (
      /** @type {Record<string, () => void>} */
      {
        ArrowDown: () => move(row + 1),
        ArrowUp: () => move(row - 1),
        PageDown: () => move(row + extent.fits - 1),
        PageUp: () => move(row - extent.fits + 1),
        Home: () => move(0),
        End: () => move(extent.row_count - 1),
        Enter: chooseHere,
        " ": chooseHere,
        ArrowRight: () => toggle(here, true),
        ArrowLeft: () => toggle(here, false),
        F2: () => here && openRow(line, here)
      }
    );
    if (!(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  F2(() => {
    const focused = frame.current?.querySelector(`[data-row="${focusNext.current}"]`);
    if (focused) focused.focus({ preventScroll: true });
    focusNext.current = -1;
    const here = store.rows.get(row);
    const isAwaited = awaited.current?.row === row;
    if (isAwaited && !here) return;
    if (isAwaited && here && isSame(awaited.current?.seen ?? here, here)) choose(here);
    awaited.current = null;
  });
  const goTo = (target) => {
    setActive(rowNumber(target));
    return rowNumber(target);
  };
  const handlers = {
    onKeyDown,
    onFocusIn: (event) => (setHasFocus(true), goTo(event.target)),
    onFocusOut: () => setHasFocus(false)
  };
  return { row, hasFocus, goTo, handlers, chooseLater };
}
function useCut() {
  const [cut, setCut] = d2(
    /** @type {{ row: number, column: string } | null} */
    null
  );
  const onPointerOver = (event) => {
    const cell = (
      /** @type {HTMLElement | null} */
      /** @type {Element} */
      event.target.closest("[data-column]")
    );
    const texts = [...cell?.querySelectorAll(".icestats-cut, small") ?? []];
    const isCut = cell !== null && texts.some((text) => text.scrollWidth > text.clientWidth + 1 || text.scrollHeight > text.clientHeight + 2);
    const found = isCut ? { row: rowNumber(cell), column: String(cell.dataset.column) } : null;
    if (found?.row !== cut?.row || found?.column !== cut?.column) setCut(found);
  };
  return (
    /** @type {const} */
    [cut, { onPointerOver, onPointerLeave: () => setCut(null) }]
  );
}
function copyText(store, selected, seen) {
  const here = [...store.rows.entries()].sort(([one], [other]) => one - other).map(([, row]) => row);
  const chosen = here.filter((row) => selected.includes(row.key));
  const texts = (chosen.length ? chosen : here).map((row) => seen.map(({ place }) => row.cells[place]?.t ?? ""));
  return buildTsv([seen.map(({ column }) => column.title), ...texts]);
}
var isSame = (one, other) => one.key === other.key && one.cells[0]?.t === other.cells[0]?.t;
var rowNumber = (element) => Number(
  /** @type {HTMLElement | null} */
  element.closest("[data-row]")?.dataset.row ?? 0
);

// src/blocks.js
function Blocks({ blocks }) {
  const keyOf = (block, place) => "id" in block ? block.id : `${block.is}${place}`;
  return m2`${blocks.map((block, place) => m2`<${OneBlock} key=${keyOf(block, place)} block=${block} />`)}`;
}
function OneBlock({ block }) {
  switch (block.is) {
    case "text":
      return m2`<${Text} text=${[block.text, block.live].filter(Boolean).join(" ")} tone=${block.tone} />`;
    case "facts":
      return m2`<${Facts} facts=${block.facts} />`;
    case "code":
      return m2`<${Code} text=${block.text} />`;
    case "figure":
      return m2`<${Figure} block=${block} />`;
    case "grid":
      return m2`<${Grid} block=${block} />`;
    case "form":
      return m2`<${Form} fields=${block.fields} />`;
    case "card":
      return m2`<${Card} block=${block} />`;
    case "side":
      return m2`<${Side} block=${block} />`;
    default:
      return null;
  }
}
function Text({ text, tone = "" }) {
  if (tone === "busy") return m2`<${Busy} key=${text} text=${text} />`;
  return m2`<p class=${`icestats-text is-${tone || "plain"}`} role=${tone === "bad" ? "alert" : void 0}>${unbroken(text)}</p>`;
}
function Facts({ facts }) {
  return m2`<div class="icestats-facts">
    ${facts.map(({ label, value, about }) => m2`<div key=${label} title=${about}>
      <span>${label}</span><b>${value}</b>
    </div>`)}
  </div>`;
}
function Busy({ text }) {
  const [seconds, setSeconds] = d2(0);
  A2(() => {
    const timer = setInterval(() => setSeconds((passed) => passed + 1), 1e3);
    return () => clearInterval(timer);
  }, []);
  return m2`<p class="icestats-text is-busy">${text}${seconds >= 3 && m2`<span aria-hidden="true"> ${seconds} s</span>`}</p>`;
}
function Code({ text }) {
  return m2`<div class="icestats-code">
    <pre tabindex="0" aria-label="Code">${text}</pre>
    <${CopyButton} label="Copy the code" text=${() => text}>Copy<//>
  </div>`;
}
function Card({ block }) {
  const part = j2(PartContext);
  const act = useAct();
  const [isOpen, setOpen] = useOwned(block.is_open);
  const toggle = () => setOpen(!isOpen, act(`${part}.${block.id}.open`, { open: !isOpen }));
  const isShown = isOpen !== false && block.blocks.length > 0;
  const title = isOpen === null || isOpen === void 0 ? m2`<span>${block.title}</span>` : m2`<button type="button" class="icestats-fold" aria-expanded=${String(isOpen)} onClick=${toggle}>
        <span class="icestats-twisty" aria-hidden="true">${isOpen ? "▾" : "▸"}</span>${block.title}</button>`;
  return m2`<section class=${`icestats-card is-${block.tone || "plain"}`} data-card=${block.id}>
    <header>
      <h4>${title}</h4>
      ${block.actions?.map((field) => m2`<${FormField} key=${field.name} field=${field} />`)}
    </header>
    ${isShown && m2`<div class="icestats-blocks"><${Blocks} blocks=${block.blocks} /></div>`}
  </section>`;
}
function Side({ block }) {
  const { blocks, shares = [] } = block;
  return m2`<div class="icestats-side">
    ${blocks.map((one, place) => m2`<div key=${place} class="icestats-blocks" style=${{ flexGrow: shares[place] ?? 1 }}>
      <${Blocks} blocks=${[one]} />
    </div>`)}
  </div>`;
}

// src/filter_bar.js
var PAUSE_MS = 60;
var CLEAR = "Clear filter and selection";
var MOODS = {
  "": "",
  waiting: "",
  busy: "The kernel is busy: what you do is kept, and done when it is free.",
  lost: "The kernel has ended. What you see is its last state: run the cell again."
};
function complete(text, start, end, item) {
  return [text.slice(0, start) + item + text.slice(end), start + item.length];
}
function Completions({ id, items, active, left, choose }) {
  const list = T2(
    /** @type {HTMLElement | null} */
    null
  );
  F2(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView?.({ block: "nearest" }), [active]);
  return m2`<ul ref=${list} id=${id} class="icestats-completions" role="listbox" aria-label="Completions" style=${{ left: `${left}px` }}>
    ${items.map((item, place) => m2`<li key=${item.text} id=${`${id}-${place}`} role="option" aria-selected=${String(place === active)}
      onPointerDown=${(event) => (event.preventDefault(), choose(place))}>
      <b>${item.text}</b><span>${item.about}</span></li>`)}</ul>`;
}
function FilterBar() {
  const link = useLink();
  const query = (
    /** @type {Query} */
    useTrait("query") ?? { text: "" }
  );
  const mood = useMood();
  const [text, setText] = useOwned(query.text);
  const [found, setFound] = d2(
    /** @type {{ before: string, begun: string, after: string, items: Completion[] } | null} */
    null
  );
  const [active, setActive] = d2(-1);
  const [left, setLeft] = d2(0);
  const input = T2(
    /** @type {HTMLInputElement | null} */
    null
  );
  const mirror = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const cursorWanted = T2(-1);
  const asked = T2({ number: Math.floor(Math.random() * 1e9), text: "", cursor: 0 });
  const id = `icestats-${link.view}`;
  const fits = found !== null && text.startsWith(found.before) && text.slice(found.before.length).endsWith(found.after);
  const begun = fits ? text.slice(found.before.length, text.length - found.after.length) : "";
  const items = fits ? begun === found.begun ? found.items : found.items.filter((item) => holds(item.text, begun)) : [];
  const close = () => (setFound(null), setActive(-1));
  const typing = useDebounced((typed) => setText(typed, link.act("query.type", { text: typed })), PAUSE_MS);
  const completing = useDebounced(() => {
    if (!input.current) return;
    asked.current = { number: asked.current.number + 1, text: input.current.value, cursor: cursorOf(input.current) };
    link.act("query.complete", { ...asked.current });
  }, PAUSE_MS);
  const type = (typed) => {
    setText(typed, Infinity);
    typing.later(typed);
  };
  const enter = (typed) => {
    typing.stop();
    completing.stop();
    close();
    setText(typed, link.act("query.enter", { text: typed }));
  };
  const clear = () => {
    typing.stop();
    completing.stop();
    close();
    setText("", link.act("query.clear"));
    input.current?.focus();
  };
  const accept = (place) => {
    if (!found) return;
    const [completed, cursor] = complete(text, found.before.length, text.length - found.after.length, items[place].text);
    cursorWanted.current = cursor;
    close();
    type(completed);
    input.current?.focus();
    completing.later();
  };
  const escape = () => {
    completing.stop();
    asked.current = { ...asked.current, number: asked.current.number + 1 };
    close();
  };
  const onKey = (event) => {
    event.stopPropagation();
    const isBegun = text.slice(found?.before.length ?? text.length, cursorOf(input.current)) !== "";
    const keys = (
      /** @type {Record<string, (() => void) | false>} */
      {
        ArrowDown: () => items.length ? setActive((active + 1) % items.length) : completing.later(),
        ArrowUp: items.length > 0 && (() => setActive((active <= 0 ? items.length : active) - 1)),
        Enter: () => active >= 0 && items.length ? accept(active) : enter(text),
        Tab: items.length > 0 && !event.shiftKey && (active >= 0 || isBegun) && (() => accept(Math.max(0, active))),
        Escape: escape,
        " ": event.ctrlKey && (() => completing.later())
      }
    );
    const work = keys[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  };
  useMessages((message) => {
    if (message.kind !== "completions" || message.number !== asked.current.number) return;
    const { text: was, cursor } = asked.current;
    const end = message.end ?? cursor;
    const [before, begun2, after] = [was.slice(0, message.start), was.slice(message.start, end), was.slice(end)];
    if (!input.current?.value.startsWith(before) || !isFocused(input.current)) return;
    setFound(message.items.length ? { before, begun: begun2, after, items: message.items } : null);
    setActive(-1);
    if (!mirror.current) return;
    mirror.current.textContent = before;
    const most = input.current.offsetWidth - 260;
    setLeft(Math.max(0, Math.min(mirror.current.offsetWidth - input.current.scrollLeft, most)));
  });
  F2(() => {
    if (cursorWanted.current >= 0) input.current?.setSelectionRange(cursorWanted.current, cursorWanted.current);
    cursorWanted.current = -1;
  });
  const said = MOODS[mood] || query.error || query.hint || query.summary || "";
  const tone = mood === "lost" || !MOODS[mood] && query.error ? "bad" : "plain";
  const is_waiting = mood === "waiting" || mood === "busy" || query.busy;
  const asks = Boolean(text || query.chips?.length);
  const tip = text === query.text ? query.tip : null;
  const ideas = asks ? [] : query.ideas ?? [];
  return m2`<div class="icestats-query" role="search">
    <div class="icestats-query-line">
      <label for=${`${id}-input`}>Filter</label>
      <div class="icestats-query-box">
        <input ref=${input} id=${`${id}-input`} class="icestats-input is-code" type="text" spellcheck="false"
          autocomplete="off" autocapitalize="off"
          role="combobox" aria-autocomplete="list" aria-expanded=${String(items.length > 0)} aria-controls=${`${id}-list`}
          aria-activedescendant=${active >= 0 ? `${id}-list-${active}` : void 0} aria-describedby=${`${id}-said`}
          aria-invalid=${String(Boolean(query.error))} placeholder=${query.ideas?.[0] ?? "a row filter"} value=${text}
          onInput=${(event) => (type(event.target.value), completing.later())} onKeyDown=${onKey} onBlur=${close} />
        <span ref=${mirror} class="icestats-mirror" aria-hidden="true"></span>
        ${items.length > 0 && m2`<${Completions} id=${`${id}-list`} items=${items} active=${active} left=${left} choose=${accept} />`}
        ${asks && m2`<button type="button" class="icestats-clear" aria-label=${CLEAR} title=${CLEAR} onClick=${clear}>×</button>`}
        <i class=${`icestats-waiting${is_waiting ? " is-on" : ""}`}></i>
      </div>
    </div>
    <div class="icestats-query-below">
      ${query.chips?.map((chip) => m2`<${ChipButton} key=${chip.text} chip=${chip} />`)}
      ${ideas.length > 0 && m2`<span class="icestats-quiet">Try</span>`}
      ${ideas.map((idea) => m2`<button type="button" key=${idea} class="icestats-idea" onClick=${() => enter(idea)}>
        ${idea}</button>`)}
      <span id=${`${id}-said`} class=${`icestats-said is-${tone}`} role="status" title=${said}>${said}</span>
      ${query.code && m2`<${CopyButton} label=${`Copy as Python: ${query.code}`} text=${() => query.code ?? ""}>Code<//>`}
    </div>
    ${tip && m2`<p class="icestats-advice" role="note"><span>${unbroken(tip.text)}</span>
      <button type="button" class="icestats-idea" onClick=${() => enter(tip.filter)}>Use it</button></p>`}
  </div>`;
}
function ChipButton({ chip }) {
  const link = useLink();
  const drop = () => link.act("query.drop", chip.action);
  return m2`<span class="icestats-chip" title=${chip.about}><span>${chip.text}</span>
    <button type="button" aria-label=${`Take out ${chip.text}`} onClick=${drop}>×</button></span>`;
}
var plain = (word) => word.replace(/["']/g, "").toLowerCase();
var holds = (item, typed) => plain(item).includes(plain(typed));
var cursorOf = (input) => input?.selectionStart ?? input?.value.length ?? 0;
var isFocused = (element) => (
  /** @type {Document | ShadowRoot} */
  element.getRootNode().activeElement === element
);

// src/part.js
function partForm(content) {
  if (!content?.blocks) return "";
  if (content.blocks.length || content.is_busy) return "blocks";
  return content.caption ? "line" : "";
}
function Part({ name, place, content, isCollapsed, isWide, fills, isBeside }) {
  const link = useLink();
  const [collapsed, setCollapsed] = useOwned(isCollapsed);
  const [wide, setWide] = useOwned(isWide);
  const form = partForm(content);
  const isShown = form === "blocks" && !collapsed;
  const { title } = place;
  const { code = "" } = content;
  const collapse = () => setCollapsed(!collapsed, link.act("page.collapse", { part: name, collapsed: !collapsed }));
  const widen = () => setWide(!wide, link.act("page.widen", { part: name, wide: !wide }));
  const headId = `icestats-${link.view}-${name}`;
  if (form === "line") {
    return m2`<section class="icestats-part is-line" data-part=${name}>
      <h3>${title}</h3><span class="icestats-quiet">${content.caption}</span>
    </section>`;
  }
  const look = `icestats-part${fills ? " is-wide" : ""}${isBeside ? " is-beside" : ""}${isShown ? "" : " is-collapsed"}`;
  return m2`<section class=${look} data-part=${name} aria-labelledby=${headId}
    aria-busy=${String(Boolean(content.is_busy))}>
    <header>
      <h3 id=${headId}><button type="button" class="icestats-fold" aria-expanded=${String(!collapsed)} onClick=${collapse}>
        <span class="icestats-twisty" aria-hidden="true">${collapsed ? "▸" : "▾"}</span>${title}</button></h3>
      <p class="icestats-caption" title=${content.caption}>${unbroken(content.caption ?? "")}</p>
      <span class="icestats-tools">
        ${code && m2`<${CopyButton} label=${`Copy as Python: ${code}`} text=${() => code}>Code<//>`}
        <${Tool} label=${`${title}: ${wide ? "half" : "the whole"} width`} isOn=${wide} name="icestats-widen" press=${widen}>Wide<//>
      </span>
    </header>
    <i class=${`icestats-waiting${content.is_busy ? " is-on" : ""}`}></i>
    ${isShown && m2`<${PartContext.Provider} value=${name}>
      <div class="icestats-blocks"><${Blocks} blocks=${content.blocks} /></div>
    <//>`}
  </section>`;
}

// src/shell.js
var TWO_COLUMNS_PIXELS = 1e3;
var WIDTH_MS = 150;
var CHANGED_PIXELS = 8;
function fillingParts(parts, hasColumns) {
  const filling = /* @__PURE__ */ new Set();
  for (let place = 0; place < parts.length; place += 1) {
    const [one, next] = [parts[place], parts[place + 1]];
    if (hasColumns && !one.isWide && next && !next.isWide) place += 1;
    else filling.add(one.name);
  }
  return filling;
}
function PageHead() {
  const head = (
    /** @type {Head} */
    useTrait("head") ?? { title: "" }
  );
  return m2`<header class="icestats-head"><h2 title=${head.about}>${head.title}</h2>
    ${head.subtitle && m2`<span class=${head.is_bad ? "is-bad" : "icestats-quiet"}>${head.subtitle}</span>`}
    <span class="icestats-busy" role="status">${head.busy}</span>
    <${Form} fields=${head.buttons ?? []} />
    ${head.facts && m2`<${Facts} facts=${head.facts} />`}</header>`;
}
function Tabs({ tabs, open, choose, id }) {
  const list = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const onKey = (event) => {
    const at = tabs.findIndex((tab) => tab.name === open);
    const goal = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (goal === void 0) return;
    event.preventDefault();
    event.stopPropagation();
    const place = (goal + tabs.length) % tabs.length;
    choose(tabs[place].name);
    list.current?.children[place]?.focus();
  };
  return m2`<div ref=${list} role="tablist" class="icestats-tabs" aria-label="Parts of the explorer" onKeyDown=${onKey}>
    ${tabs.map((tab) => m2`<button type="button" key=${tab.name} role="tab" id=${`${id}-tab-${tab.name}`} aria-selected=${String(tab.name === open)}
      aria-controls=${`${id}-panel`} tabindex=${tab.name === open ? 0 : -1} onClick=${() => choose(tab.name)}>${tab.title}</button>`)}</div>`;
}
function Shell() {
  const link = useLink();
  const tabs = (
    /** @type {Tab[]} */
    useTrait("tabs") ?? []
  );
  const [open, setOpen] = useOwned(
    /** @type {string} */
    useTrait("tab")
  );
  const places = (
    /** @type {Record<string, PartPlace>} */
    useTrait("index") ?? {}
  );
  const arrangement = (
    /** @type {Arrangement} */
    useTrait("arrangement") ?? { collapsed: [], wide: [] }
  );
  const traitOf = useTraits(Object.keys(places).map((name) => `part_${name}`));
  const contentOf = (name) => (
    /** @type {PartContent | undefined} */
    traitOf(`part_${name}`)
  );
  const root = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const width = useWidth(root, 1200);
  const [said, setSaid] = d2(
    /** @type {{ kind: string, text: string } | null} */
    null
  );
  const id = `icestats-${link.view}`;
  const shown = Object.keys(places).filter((name) => places[name].tab === open && partForm(contentOf(name)) !== "").map((name) => ({ name, isBeside: places[name].is_beside === true, isWide: arrangement.wide.includes(name) || partForm(contentOf(name)) === "line" }));
  const hasColumns = width >= TWO_COLUMNS_PIXELS;
  const filling = fillingParts(shown.filter(({ isBeside }) => !isBeside), hasColumns);
  shown.forEach(({ name, isBeside }, place) => isBeside && place && filling.has(shown[place - 1].name) && filling.add(name));
  const choose = (name) => name !== open && setOpen(name, link.act("page.tab", { name }));
  const panel = T2(
    /** @type {HTMLElement | null} */
    null
  );
  const before = T2(open);
  F2(() => {
    const { current } = panel;
    const bottom = current?.previousElementSibling?.getBoundingClientRect().bottom ?? 0;
    if (before.current !== open && current && current.getBoundingClientRect().top < bottom) current.scrollIntoView({ block: "start" });
    before.current = open;
  }, [open]);
  const wanted = T2("");
  const redraw = useRedraw();
  A2(() => {
    const place = shown.some(({ name }) => name === wanted.current) && root.current?.querySelector(`[data-part="${wanted.current}"]`);
    if (place) place.scrollIntoView({ block: "start" });
  });
  const goOn = () => void (wanted.current = "");
  useReportedWidths(root);
  A2(() => {
    requestAnimationFrame(() => requestAnimationFrame(() => link.act("page.shown", {})));
  }, []);
  useMessages((message) => {
    if (message.kind === "file") save(message.name, new Blob([message.text], { type: message.type }));
    if (message.kind === "part") {
      wanted.current = message.part;
      redraw();
    }
    if (message.kind === "code" || message.kind === "problem") setSaid({ kind: message.kind, text: message.text });
  });
  return m2`<div ref=${root} class="icestats-explorer" onPointerDown=${goOn} onWheel=${goOn} onKeyDown=${goOn}><${WidthContext.Provider} value=${width}>
    <${PageHead} />
    ${said && m2`<div class="icestats-reply" role="status">
      ${said.kind === "code" ? m2`<${Code} text=${said.text} />` : m2`<p class="is-bad">${said.text}</p>`}
      <button type="button" aria-label="Close" onClick=${() => setSaid(null)}>×</button></div>`}
    <div class="icestats-bar-sticky"><${FilterBar} /><${Tabs} tabs=${tabs} open=${open} choose=${choose} id=${id} /></div>
    <div ref=${panel} class=${`icestats-panel${hasColumns ? " has-columns" : ""}`} role="tabpanel" id=${`${id}-panel`}
      aria-labelledby=${`${id}-tab-${open}`}>
      ${shown.map(({ name, isWide, isBeside }) => m2`<${Part} key=${name} name=${name} place=${places[name]} content=${contentOf(name)}
        isWide=${isWide} isCollapsed=${arrangement.collapsed.includes(name)} fills=${filling.has(name)} isBeside=${isBeside} />`)}
    </div><//></div>`;
}
function useReportedWidths(root) {
  const link = useLink();
  const told = T2(
    /** @type {Record<string, number>} */
    {}
  );
  const report = () => {
    const { current } = root;
    if (!current?.clientWidth) return;
    const widths = {};
    for (const figure of current.querySelectorAll("[data-figure]")) {
      if (figure.clientWidth) widths[
        /** @type {HTMLElement} */
        figure.dataset.figure ?? ""
      ] = figure.clientWidth;
    }
    const isSame2 = Object.entries(widths).every(([name, pixels]) => Math.abs((told.current[name] ?? 0) - pixels) < CHANGED_PIXELS);
    if (isSame2) return;
    told.current = { ...told.current, ...widths };
    link.act("page.width", { figures: widths });
  };
  const { later } = useDebounced(report, WIDTH_MS);
  F2(() => {
    const observer = new ResizeObserver(() => later());
    observer.observe(
      /** @type {HTMLElement} */
      root.current
    );
    report();
    return () => observer.disconnect();
  }, []);
  A2(() => later());
}

// src/surroundings.js
var BOXES = [".jp-OutputArea-output", ".jp-OutputArea-child", ".jp-OutputArea"];
var DARK_MARKS = ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme", "theme", "class", "style"];
function letStick(el) {
  let boxes = [];
  const observer = new ResizeObserver(() => {
    boxes = BOXES.map((name) => (
      /** @type {HTMLElement | null} */
      el.closest(name)
    )).filter((box) => box !== null);
    for (const box of boxes) box.classList.add("icestats-unboxed");
    if (el.isConnected) observer.disconnect();
  });
  observer.observe(el);
  return () => {
    observer.disconnect();
    for (const box of boxes) box.classList.remove("icestats-unboxed");
  };
}
function followTheme(el) {
  const look = () => el.firstElementChild?.classList.toggle("icestats-dark", isDark(el));
  const query = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(look);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true, attributeFilter: DARK_MARKS });
  const sizes = new ResizeObserver(look);
  sizes.observe(el);
  query.addEventListener("change", look);
  look();
  return () => {
    observer.disconnect();
    sizes.disconnect();
    query.removeEventListener("change", look);
  };
}
function paint(colour) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d");
  if (!context) return [0, 0, 0, 0];
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}
function isDark(el) {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  for (let at = (
    /** @type {Node | null} */
    el
  ); at; at = at.parentNode ?? /** @type {ShadowRoot} */
  at.host ?? null) {
    const [red, green, blue, alpha] = at instanceof Element ? paint(getComputedStyle(at).backgroundColor) : [0, 0, 0, 0];
    if (alpha > 127) return red * 0.3 + green * 0.59 + blue * 0.11 < 110;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
function hidePicture(id, link) {
  const style = document.createElement("style");
  const follow = () => {
    const isDead = link.heard === 0 && (link.mood === "busy" || link.mood === "lost");
    style.textContent = id && !isDead ? `[data-icestats-picture="${CSS.escape(id)}"] { display: none; }` : "";
  };
  follow();
  document.head.append(style);
  const leave = link.watch(follow);
  return () => {
    leave();
    style.remove();
  };
}

// src/explorer.js
function render({ model, el }) {
  const link = new Link(model);
  Q(m2`<${LinkContext.Provider} value=${link}><${Shell} /><//>`, el);
  const leave = [followTheme(el), letStick(el), hidePicture(model.get("picture_id"), link)];
  return () => {
    for (const one of leave) one();
    Q(null, el);
    link.close();
  };
}
var explorer_default = { render };
export {
  explorer_default as default
};
