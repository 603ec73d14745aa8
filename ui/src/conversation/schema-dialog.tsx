/** The shape of the answer, as a JSON schema. */

import { useState } from "react";
import type { ResponseFormat } from "../api/wire.ts";
import { Dialog } from "../shell/dialog.tsx";

const example = `{
  "type": "object",
  "properties": {
    "title": { "type": "string" },
    "points": { "type": "array", "items": { "type": "string" } }
  },
  "required": ["title", "points"],
  "additionalProperties": false
}`;

interface SchemaDialogProps {
  value: ResponseFormat | null;
  onChoose(value: ResponseFormat | null): void;
  onClose(): void;
}

export function SchemaDialog({ value, onChoose, onClose }: SchemaDialogProps) {
  const [name, setName] = useState(value?.json_schema?.name ?? "answer");
  const [text, setText] = useState(
    value?.json_schema?.schema === undefined
      ? example
      : JSON.stringify(value.json_schema.schema, null, 2),
  );
  const problem = problemOf(name, text);
  const choose = (chosen: ResponseFormat | null): void => {
    onChoose(chosen);
    onClose();
  };
  return (
    <Dialog title="Answer as JSON" onClose={onClose}>
      <form
        className="dialog-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (problem !== null) return;
          const schema: unknown = JSON.parse(text);
          choose({ type: "json_schema", json_schema: { name, schema, strict: true } });
        }}
      >
        <p>Every answer of this conversation will fit the schema, token by token.</p>
        <label>
          Name
          <input value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        <label>
          JSON schema
          <textarea
            className="code-field"
            rows={14}
            spellCheck={false}
            value={text}
            aria-invalid={problem !== null}
            aria-describedby="schema-problem"
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <p id="schema-problem" className="field-problem" role="status">
          {problem}
        </p>
        <div className="buttons">
          <button type="submit" className="primary" disabled={problem !== null}>
            Use this schema
          </button>
          {value !== null && (
            <button type="button" onClick={() => choose(null)}>
              Answer as text
            </button>
          )}
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function problemOf(name: string, text: string): string | null {
  if (!/^[\w-]{1,64}$/.test(name)) return "The name takes letters, digits, _ and -, at most 64.";
  try {
    const schema: unknown = JSON.parse(text);
    const isSchema = typeof schema === "object" && schema !== null && !Array.isArray(schema);
    return isSchema ? null : "A schema is a JSON object.";
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
}
