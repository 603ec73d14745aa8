/** The page's icons, drawn in the colour of the text. */

const paths = {
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  check: "M3 8.5l3.2 3.2L13 5",
  cross: "M4 4l8 8M12 4l-8 8",
  copy: "M6 6h7v7H6zM3 10V3h7",
  edit: "M10.5 3.5l2 2L6 12l-2.7.7L4 10z",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5V5h-2.6",
  left: "M9.5 4L5.5 8l4 4",
  right: "M6.5 4l4 4-4 4",
  down: "M4 6.5l4 4 4-4",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  search: "M7 11.5a4.5 4.5 0 1 1 0-9 4.5 4.5 0 0 1 0 9zM10.3 10.3L13.5 13.5",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
  tool: "M9.8 3.2a3 3 0 0 0-3.6 3.9L3 10.3V13h2.7l3.2-3.2a3 3 0 0 0 3.9-3.6L11 8 8 5z",
  clock: "M8 13.5a5.5 5.5 0 1 1 0-11 5.5 5.5 0 0 1 0 11zM8 5v3l2 1.5",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  braces:
    "M6 3c-2 0-2 1-2 2.5S4 8 2.7 8C4 8 4 9 4 10.5S4 13 6 13M10 3c2 0 2 1 2 2.5S12 8 13.3 8C12 8 12 9 12 10.5S12 13 10 13",
  help: "M6 6.2a2 2 0 1 1 2.8 1.9c-.6.3-.8.6-.8 1.3M8 11.7v.1",
  theme: "M8 13.5a5.5 5.5 0 1 1 0-11zM8 2.5a5.5 5.5 0 0 1 0 11",
  timeline: "M2.5 4.5h6M5 8h7M8.5 11.5h5",
  warning: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.3v.1",
  agent: "M8 7.5a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6zM3.5 13c.4-2.6 2.2-4 4.5-4s4.1 1.4 4.5 4",
} as const;

export type IconName = keyof typeof paths;

/** Decorative: the text beside it or the button's name says the same. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** The fermata sign: hold. */
export function FermataMark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M3 22a13 13 0 0 1 26 0h-2a11 9.5 0 0 0-22 0z" />
      <circle cx="16" cy="20.6" r="2.7" />
    </svg>
  );
}
