import { safeLink, showControls } from "../markdown/safe-text.ts";

export function Citations({ citations }: { citations: readonly string[] }) {
  if (citations.length === 0) return null;
  return (
    <section className="citations" aria-label="Sources">
      <h3>Sources</h3>
      <ol>
        {citations.map((citation) => (
          <li key={citation}>
            <Citation text={citation} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Citation({ text }: { text: string }) {
  const href = safeLink(text);
  const shown = <bdi>{showControls(text)}</bdi>;
  if (href === null) return shown;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener nofollow">
      {shown}
    </a>
  );
}
