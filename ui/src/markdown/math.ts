/**
 * TeX as MathML; loaded with the first formula. The converter's tree becomes elements here, so no
 * TeX can produce a link, a style attribute or a foreign element.
 */

import temml from "temml";

const mathMl = "http://www.w3.org/1998/Math/MathML";

const elements = new Set(
  (
    "math maction merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow " +
    "ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none semantics"
  ).split(" "),
);

const attributes = new Set(
  (
    "accent accentunder columnalign columnlines columnspacing columnspan depth dir display " +
    "displaystyle fence form height largeop linethickness lspace mathcolor mathsize mathvariant " +
    "maxsize minsize movablelimits notation rowalign rowlines rowspacing rowspan rspace scriptlevel " +
    "separator stretchy symmetric voffset width"
  ).split(" "),
);

const properties = new Set(
  (
    "background-color border border-bottom border-left border-right border-top border-radius color " +
    "display font-size font-style font-weight height margin margin-left margin-right " +
    "math-depth math-style padding padding-bottom padding-left padding-right padding-top " +
    "text-align text-decoration vertical-align width"
  ).split(" "),
);

/** A node of Temml's tree: an element, a text or a fragment. */
interface TreeNode {
  type?: string;
  text?: string;
  attributes?: Record<string, unknown>;
  style?: Record<string, unknown>;
  classes?: readonly string[];
  children?: readonly TreeNode[];
}

const converter = temml as unknown as {
  __renderToMathMLTree(tex: string, options: object): TreeNode;
};

/** A detached MathML element; null if the TeX is invalid. */
export function mathElement(tex: string, display: boolean): Node | null {
  try {
    const tree = converter.__renderToMathMLTree(tex, {
      displayMode: display,
      throwOnError: true,
      trust: false,
      strict: false,
      maxExpand: 200,
      maxSize: [20, 20],
    });
    return toNode(tree);
  } catch {
    return null;
  }
}

function toNode(node: TreeNode): Node {
  const { type, text, children = [] } = node;
  if (type === undefined && text !== undefined) return document.createTextNode(text);
  // Of an element that is not MathML, only the children are kept.
  const isElement = type !== undefined && elements.has(type);
  const made = isElement ? elementOf(type, node) : document.createDocumentFragment();
  made.append(...children.map(toNode));
  return made;
}

function elementOf(type: string, node: TreeNode): Element {
  const element = document.createElementNS(mathMl, type) as MathMLElement;
  for (const [name, value] of Object.entries(node.attributes ?? {})) {
    if (attributes.has(name)) element.setAttribute(name, String(value));
    else if (name === "style") setStyle(element, declarations(String(value)));
  }
  setStyle(element, Object.entries(node.style ?? {}));
  return element;
}

function declarations(text: string): [string, unknown][] {
  return text.split(";").map((each) => {
    const colon = each.indexOf(":");
    return [each.slice(0, colon).trim(), each.slice(colon + 1).trim()];
  });
}

function setStyle(element: MathMLElement, style: readonly [string, unknown][]): void {
  for (const [given, value] of style) {
    const name = given.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const text = String(value);
    if (properties.has(name) && !text.includes("url(")) element.style.setProperty(name, text);
  }
}
