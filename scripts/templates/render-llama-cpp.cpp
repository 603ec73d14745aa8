// Renders chat templates as llama.cpp's server does. One JSON request a line on stdin,
// {template, messages, tools?}; one answer a line on stdout, {prompt} or {error}.
// The clock stands still: templates write dates.
#include <ctime>
#include <iostream>
#include <string>

#include "chat.h"
#include "jinja/runtime.h"
#include "json.h"

using json = common_json;

namespace {
constexpr std::time_t kNow = 1767268800;  // 2026-01-01T12:00:00Z
}

extern "C" std::time_t time(std::time_t* out) {
    if (out != nullptr) *out = kNow;
    return kNow;
}

extern "C" int clock_gettime(clockid_t, timespec* out) {
    *out = {.tv_sec = kNow, .tv_nsec = 0};
    return 0;
}

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        json answer = json::object();
        try {
            const json request = json::parse(line);
            auto templates = common_chat_templates_init(
                nullptr, request.at("template").get<std::string>(), "<s>", "</s>");
            common_chat_templates_inputs inputs;
            inputs.use_jinja = true;
            inputs.messages = common_chat_msgs_parse_oaicompat(request.at("messages"));
            if (request.contains("tools"))
                inputs.tools = common_chat_tools_parse_oaicompat(request.at("tools"));
            // What the server starts with, unless it is told otherwise.
            inputs.chat_template_kwargs["preserve_reasoning"] = "true";
            inputs.enable_thinking = common_chat_templates_support_enable_thinking(templates.get());
            inputs.parallel_tool_calls = true;
            inputs.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
            answer["prompt"] = common_chat_templates_apply(templates.get(), inputs).prompt;
        } catch (const std::exception& error) {
            answer["error"] = std::string(error.what());
        }
        std::cout << answer.dump() << std::endl;
    }
    return 0;
}
