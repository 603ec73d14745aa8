/** Switches between the branches at this message. */

import { Icon } from "../shell/icon.tsx";
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
      <button
        type="button"
        className="icon-button"
        aria-label="Previous branch"
        disabled={index === 0}
        onClick={() => go(index - 1)}
      >
        <Icon name="left" />
      </button>
      <span>
        {index + 1}/{ids.length}
      </span>
      <button
        type="button"
        className="icon-button"
        aria-label="Next branch"
        disabled={index === ids.length - 1}
        onClick={() => go(index + 1)}
      >
        <Icon name="right" />
      </button>
    </span>
  );
}
