// Rules of this project that oxlint does not have.

import { layerRule } from "./layers.mjs";

const noBareError = {
  create(context) {
    return {
      ThrowStatement(node) {
        const thrown = node.argument;
        const bare =
          (thrown?.type === "NewExpression" || thrown?.type === "CallExpression") &&
          thrown.callee.type === "Identifier" &&
          thrown.callee.name === "Error";
        if (bare) {
          context.report({
            node,
            message: "Throw a FermataError, with a code from src/errors.ts.",
          });
        }
      },
    };
  },
};

export default {
  meta: { name: "fermata" },
  rules: { layers: layerRule, "no-bare-error": noBareError },
};
