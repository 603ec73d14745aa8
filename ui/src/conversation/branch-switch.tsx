/** Switches between the branches at this message. */

import { IconButton } from "../shell/icon-button.tsx";
import { switchBranch } from "../state/actions.ts";
import { announce } from "../state/announcer.ts";
import { showFailure } from "../state/notice.ts";
import type { Siblings } from "./branches.ts";

export function BranchSwitch({ siblings: { index, ids } }: { siblings: Siblings }) {
  if (ids.length < 2) return null;
  const go = (to: number): void => {
    const id = ids[to];
    if (id === undefined) return;
    announce(`Branch ${to + 1} of ${ids.length}.`);
    void switchBranch(id).catch(showFailure);
  };
  return (
    <span className="branch-switch" role="group" aria-label="Branches">
      <IconButton
        icon="left"
        label="Previous branch"
        disabled={index === 0}
        onClick={() => go(index - 1)}
      />
      <span>
        {index + 1}/{ids.length}
      </span>
      <IconButton
        icon="right"
        label="Next branch"
        disabled={index === ids.length - 1}
        onClick={() => go(index + 1)}
      />
    </span>
  );
}
