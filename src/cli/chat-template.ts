/** --chat-template and --chat-template-file: a template instead of the model's own. */

import { readFileSync } from "node:fs";
import { JinjaTemplate } from "../chat/template/jinja/jinja-template.ts";
import { FermataError } from "../errors.ts";

const chatml =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const gemma =
  "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' + message.content | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}";

const templates: Readonly<Record<string, string>> = { chatml, gemma };

export const namedTemplates: readonly string[] = Object.keys(templates);

/** Jinja text; undefined: the model's own template is used. @throws FermataError invalid_option */
export function givenTemplate({
  chatTemplate,
  chatTemplateFile,
}: {
  chatTemplate?: string | undefined;
  chatTemplateFile?: string | undefined;
}): string | undefined {
  if (chatTemplateFile !== undefined) {
    const source = readTemplate(chatTemplateFile);
    checkTemplate(source, `--chat-template-file: ${chatTemplateFile}`, "chat-template-file");
    return source;
  }
  if (chatTemplate === undefined) return undefined;
  const source = templates[chatTemplate] ?? chatTemplate;
  checkTemplate(source, "--chat-template", "chat-template");
  return source;
}

function readTemplate(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw invalid(
      `--chat-template-file: ${path} cannot be read: ${(cause as Error).message}.`,
      "chat-template-file",
      cause,
    );
  }
}

function checkTemplate(source: string, name: string, param: string): void {
  if (!/\{[{%]/u.test(source)) {
    const remedy = `Give Jinja text, --chat-template-file FILE, or one of ${namedTemplates.join(", ")}.`;
    throw invalid(`${name} has no {{ … }} or {% … %}, so it is no template. ${remedy}`, param);
  }
  try {
    new JinjaTemplate(source);
  } catch (cause) {
    throw invalid(`${name} is not valid Jinja: ${(cause as Error).message}.`, param, cause);
  }
}

function invalid(message: string, param: string, cause?: unknown): FermataError {
  return new FermataError("invalid_option", message, { param, cause });
}
