/** TeX as MathML. The converter is loaded with the first formula; until then, and for invalid TeX, the source is shown. */

import { memo, useEffect, useRef, useState } from "react";

/** In UTF-16 units. */
const longestFormula = 4000;

export const MathView = memo(function MathView({
  tex,
  display,
}: {
  tex: string;
  display: boolean;
}) {
  const holder = useRef<HTMLSpanElement>(null);
  const [isDrawn, setDrawn] = useState(false);
  useEffect(() => {
    let isGone = false;
    if (tex.length > longestFormula) return undefined;
    void import("./math.ts").then(({ mathElement }) => {
      const element = mathElement(tex, display);
      if (isGone || element === null) return;
      holder.current?.replaceChildren(element);
      setDrawn(true);
    });
    return () => {
      isGone = true;
      setDrawn(false);
    };
  }, [tex, display]);
  return (
    <span className={display ? "math display" : "math"} {...(display && { tabIndex: 0 })}>
      {!isDrawn && <code>{tex}</code>}
      <span ref={holder} />
    </span>
  );
});
