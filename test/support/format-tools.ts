/** What the recorded outputs of formats call. */

export const text = { type: "string" };
export const tools = [
  {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: {
        city: text,
        unit: { type: "string", enum: ["celsius", "fahrenheit"] },
        days: { type: "integer" },
      },
      required: ["city"],
      additionalProperties: false,
    },
  },
  {
    name: "ping",
    parameters: { type: "object", properties: {}, additionalProperties: false },
  },
];
