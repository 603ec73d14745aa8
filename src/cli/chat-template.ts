/** `--chat-template`: a template instead of the model's own. */

import { readFileSync } from "node:fs";
import { JinjaTemplate } from "../chat/template/jinja/jinja-template.ts";
import { invalidOption } from "../errors.ts";

const chatml =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const gemma =
  "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' + message.content | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}";

const templates: Readonly<Record<string, string>> = { chatml, gemma };

export const namedTemplates: readonly string[] = Object.keys(templates);

/** Jinja text, or the name of a template; everything else is a file. */
export function isTemplateWord(text: string): boolean {
  return Object.hasOwn(templates, text) || isJinja(text);
}

/**
 * Jinja text; undefined: the model's own template is used.
 * @param given a path, or as `isTemplateWord` says @throws FermataError invalid_option
 */
export function givenTemplate(given: string | undefined): string | undefined {
  if (given === undefined) return undefined;
  const isFile = !isTemplateWord(given);
  const source = isFile ? readTemplate(given) : (templates[given] ?? given);
  const name = isFile ? `--chat-template: ${given}` : "--chat-template";
  if (!isJinja(source))
    throw invalidOption(
      `${name} has no {{ … }} or {% … %}, so it is not a template.`,
      "chat-template",
    );
  try {
    new JinjaTemplate(source);
    return source;
  } catch (cause) {
    throw invalidOption(
      `${name} is not valid Jinja: ${(cause as Error).message}.`,
      "chat-template",
      cause,
    );
  }
}

function readTemplate(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const words = namedTemplates.join(", ");
    const remedy = `Give a file, Jinja text, or one of ${words}.`;
    const message = `--chat-template: ${path} cannot be read: ${(cause as Error).message}.`;
    throw invalidOption(`${message} ${remedy}`, "chat-template", cause);
  }
}

function isJinja(text: string): boolean {
  return /\{[{%]/u.test(text);
}
