// What a model without a chat template does, in a server process of its own: the same tests for each.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type ServedCommand, serveCommand } from "./command-line.ts";

const messages = [{ role: "user", content: "What can you do?" }];
let server: ServedCommand | undefined;

async function post(path: string, body: object) {
  const response = await fetch(`${server!.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function servedModels(): Promise<unknown> {
  const tools = await (await fetch(`${server!.url}/api/tools`)).json();
  return (tools as { models: unknown }).models;
}

export function describeBaseModel(name: string, model: string): void {
  describe(name, () => {
    afterEach(async () => {
      await server?.stop();
      server = undefined;
    });

    async function serve(...args: string[]): Promise<void> {
      const small = ["--parallel=1", "--threads=1", "--ctx-size=1024", "--store=none"];
      server = await serveCommand(`--model=${model}`, ...small, ...args);
    }

    test("completes texts, says at start that it cannot chat, and refuses chat with the remedy", async () => {
      await serve("--alias=base,other", "--n-predict=3");
      expect(server!.log()).toContain("chat: none: the model has no chat template");
      expect(server!.out()).toMatch(/^Chat +none: the model has no chat template/mu);
      expect(server!.out()).toContain("/v1/completions -H");

      const completion = await post("/v1/completions", { prompt: "Once", temperature: 0 });
      expect(completion.status).toBe(200);
      expect(completion.body).toMatchObject({
        model: "base",
        choices: [{ finish_reason: "length" }],
        usage: { completion_tokens: 3 },
      });

      expect(await servedModels()).toMatchObject([{ id: "base", tool_section: null }]);
      const { body } = await post("/tokenize", { content: "Once more", parse_special: false });
      expect(await post("/detokenize", body)).toMatchObject({ body: { content: "Once more" } });

      const { status, body: refusal } = await post("/v1/chat/completions", {
        messages,
        stream: true,
      });
      expect(status).toBe(400);
      expect(refusal["error"]).toMatchObject({
        code: "model_without_template",
        message: expect.stringContaining("--chat-template-file FILE") as string,
      });
    });

    test("chats, with tools, through a template that is given", async () => {
      const file = join(mkdtempSync(join(tmpdir(), "fermata-")), "chatml.jinja");
      const turn = "'<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n'";
      const opening = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
      writeFileSync(file, `{% for m in messages %}{{ ${turn} }}{% endfor %}${opening}`);
      await serve(`--chat-template=${file}`);
      expect(server!.log()).toContain(
        "tools: generic prompt, since the template has no tool section",
      );
      expect(server!.out()).toMatch(/^Tools +generic prompt, since/mu);
      expect(server!.out()).toContain("/v1/chat/completions -H");
      expect(await servedModels()).toMatchObject([
        { tool_section: "generic", tool_format: "qwen" },
      ]);

      const answer = await post("/v1/chat/completions", {
        messages,
        max_tokens: 8,
        temperature: 0,
      });
      expect(answer.status).toBe(200);
      const parameters = {
        type: "object",
        properties: { unit: { type: "string", enum: ["celsius", "kelvin"] } },
        required: ["unit"],
      };
      const tools = [{ type: "function", function: { name: "thermometer", parameters } }];
      const options = {
        tools,
        tool_choice: "required",
        parallel_tool_calls: false,
        temperature: 0,
        max_tokens: 100,
      };
      const called = await post("/v1/chat/completions", { messages, ...options });
      const [choice] = called.body["choices"] as {
        finish_reason: string;
        message: { tool_calls: { function: { name: string; arguments: string } }[] };
      }[];
      expect(choice!.finish_reason).toBe("tool_calls");
      const [call] = choice!.message.tool_calls;
      expect(call!.function.name).toBe("thermometer");
      expect(["celsius", "kelvin"]).toContain(
        (JSON.parse(call!.function.arguments) as { unit: string }).unit,
      );
    });
  });
}
