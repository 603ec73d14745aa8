/** A button that is a picture: its name is for those who do not see it, and its tooltip. */

import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icon.tsx";

type ButtonProps = Omit<ComponentProps<"button">, "type" | "children">;

export function IconButton({
  icon,
  label,
  className = "",
  title = label,
  ...others
}: ButtonProps & { icon: IconName; label: string }) {
  const names = `icon-button ${className}`.trim();
  return (
    <button {...others} type="button" className={names} aria-label={label} title={title}>
      <Icon name={icon} />
    </button>
  );
}
