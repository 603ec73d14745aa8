/** A question of a call's server: what it says, a field for each value that it wants, and the answer's buttons. */

import { type FormEvent, useId, useState } from "react";
import {
  fieldValue,
  questionContent,
  type QuestionField,
  questionFields,
} from "../../../src/client/question-fields.ts";
import type { Question } from "../../../src/client/types.ts";
import { messageOf } from "../api/request.ts";
import { showControls } from "../markdown/safe-text.ts";
import { decide } from "../state/actions.ts";
import type { Call } from "./turn.ts";

export function QuestionForm({ call, question }: { call: Call; question: Question }) {
  const [sent, setSent] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const { message, schema, url } = question;
  const fields = questionFields(schema);
  const send = async (answer: Parameters<typeof decide>[1]): Promise<void> => {
    setSent(true);
    setError(null);
    try {
      await decide(call, answer);
    } catch (cause) {
      setSent(false);
      setError(messageOf(cause));
    }
  };
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const content = questionContent(fields, (name) => data.getAll(name).map(String));
    void send({ decision: "approve", ...(schema === undefined ? {} : { content }) });
  };
  const name = showControls(call.tool_call_details.server ?? call.tool_name);
  return (
    <form className="approval" aria-label={`Question of ${name}`} onSubmit={submit}>
      <p dir="auto">
        <strong>{name}</strong> asks: {showControls(message)}
      </p>
      {url !== undefined && (
        <p>
          <a href={url} target="_blank" rel="noreferrer noopener">
            {showControls(url)}
          </a>
        </p>
      )}
      {fields.map((field) => (
        <Field key={field.name} field={field} />
      ))}
      <div className="buttons">
        <button type="submit" className="primary" data-approve={call.call_id} disabled={sent}>
          {schema === undefined ? "Accept" : "Send"}
        </button>
        <button
          type="button"
          data-deny={call.call_id}
          disabled={sent}
          onClick={() => void send({ decision: "deny" })}
        >
          Decline
        </button>
      </div>
      {error !== null && <p role="alert">{error}</p>}
    </form>
  );
}

function Field({ field }: { field: QuestionField }) {
  const id = useId();
  const { name, label, description, kind, isRequired: required, initial } = field;
  const shared = { id, name, required };
  const options = kind === "boolean" ? yesNo : field.options;
  return (
    <label htmlFor={id} className="question-field">
      <span>
        {showControls(label)}
        {description !== "" && <small> {showControls(description)}</small>}
      </span>
      {options.length === 0 ? (
        <input
          {...shared}
          type={kind === "number" ? "number" : "text"}
          {...(kind === "number" && { step: "any" })}
          defaultValue={initial}
          autoComplete="off"
        />
      ) : (
        <select
          {...shared}
          multiple={kind === "choices"}
          defaultValue={
            kind === "choices" ? (fieldValue(field, initial) as string[] | undefined) : initial
          }
        >
          {kind !== "choices" && <option value="" />}
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {showControls(option.label)}
            </option>
          ))}
        </select>
      )}
    </label>
  );
}

const yesNo = [
  { value: "true", label: "Yes" },
  { value: "false", label: "No" },
];
