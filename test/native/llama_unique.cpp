// Arrays whose items must all differ, over real vocabularies: where most tokens are allowed, masks
// are made without looking at each of them. The vocabularies are in llama.cpp's source.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "check.h"
#include "core/token_mask.h"
#include "guidance/lark_compiler.h"
#include "llama/describe_vocabulary.h"
#include "llama/model.h"
#include "unique_arrays.h"

using namespace fermata;

namespace {

struct Subject {
    std::shared_ptr<const Model> model;
    std::shared_ptr<const LarkCompiler> compiler;

    std::unique_ptr<Matcher> behind(const std::string& schema, const std::string& text) const {
        auto grammar = compiler->compile("start: %json " + schema);
        if (!grammar.ok()) check::fail(__FILE__, __LINE__, grammar.error().message);
        auto matcher = grammar.value()->make_matcher();
        for (const Token token : model->tokenizer().tokenize_continuation(text)) {
            if (matcher->accepted(std::span(&token, 1)) != 1 || !matcher->consume(token))
                check::fail(__FILE__, __LINE__, "refused: " + text);
        }
        return matcher;
    }
};

const std::vector<Subject>& subjects() {
    static const std::vector<Subject> all = [] {
        std::string folder;
        for (const std::string base : {"", "../", "../../"}) {
            const std::string path = base + ".cache/llama.cpp/models/ggml-vocab-";
            if (std::filesystem::exists(path + "gpt-2.gguf")) folder = path;
        }
        std::vector<Subject> found;
        for (const std::string name : {"qwen2", "llama-spm", "gemma-4"}) {
            auto model = Model::load(
                {.path = folder + name + ".gguf", .vocabulary_only = true, .on_progress = {}});
            if (!model.ok()) check::fail(__FILE__, __LINE__, model.error().message);
            auto compiler = LarkCompiler::create(describe_vocabulary(model.value()));
            if (!compiler.ok()) check::fail(__FILE__, __LINE__, compiler.error().message);
            found.push_back({model.value(), compiler.value()});
        }
        return found;
    }();
    return all;
}

const std::string kText = R"({"type":"string"})";
std::string point(const std::string& tags) {
    return R"({"type":"object","properties":{"id":{"type":"string"},"tags":)" + tags +
           R"(},"required":["id"],"additionalProperties":false})";
}

const std::string kFree = R"({"type":"array","items":{"type":"string"}})";
const std::string kPoint = point(unique_array(kText, kOfTexts, "", true));

}  // namespace

TEST(a_mask_leaves_out_the_tokens_that_would_be_refused_and_no_others) {
    for (const Subject& subject : subjects()) {
        const auto tokens = describe_vocabulary(subject.model).tokens;
        for (const auto& [items, text] : std::vector<std::pair<std::string, std::string>>{
                 {kText, R"(["alpha", "beta", "al)"},
                 {kText, R"(["alpha", "beta", ")"},
                 {kText, R"(["alpha", "", "a\"b", ")"},
                 {kText, R"(["a\"b", "a)"},
                 {kText, R"(["alpha")"},
                 {kPoint, R"([{"id": "x", "tags": ["a", "b"]}, {"id": "x", "tags": ["a", ")"},
                 {kPoint, R"([{"id": "x"}, {"id": ")"},
                 {kPoint, R"([{"id": "x"}, {"id": "x)"}}) {
            const auto unique = subject.behind(unique_array(items, kOfTexts), text);
            const auto free =
                subject.behind(R"({"type":"array","items":)" +
                                   (items == kPoint ? point(kFree) : items) + "," + kGuidance + "}",
                               text);
            std::vector<std::uint32_t> mask;
            std::vector<std::uint32_t> whole;
            CHECK(unique->compute_mask(mask));
            CHECK(free->compute_mask(whole));
            std::size_t taken = 0;
            for (std::size_t id = 0; id < tokens.size(); ++id) {
                const auto token = static_cast<Token>(id);
                if (!allows(whole, token)) continue;
                const bool is_allowed = allows(mask, token);
                taken += !is_allowed;
                // What has no quote and is not short neither ends a text nor begins one.
                if (is_allowed && tokens[id].find('"') == std::string::npos && id % 50 != 0)
                    continue;
                CHECK_EQ(
                    text + tokens[id] + (is_allowed ? " allowed" : " refused"),
                    text + tokens[id] +
                        (unique->accepted(std::span(&token, 1)) == 1 ? " allowed" : " refused"));
            }
            if (text == R"(["alpha")") CHECK_EQ(taken, std::size_t{0});
            if (text.ends_with(R"("x)")) CHECK(taken > 0);
        }
    }
}

TEST(a_long_array_costs_little_more) {
    const Subject& subject = subjects().front();
    std::string text = "[";
    for (int item = 0; item < 200; ++item)
        text += (item == 0 ? "\"item " : ", \"item ") + std::to_string(item * 7919 % 1000) + "\"";
    text += "]";
    const auto tokens = subject.model->tokenizer().tokenize_continuation(text);
    const auto walk = [&](const std::string& schema) {
        auto grammar = subject.compiler->compile("start: %json " + schema);
        const auto matcher = grammar.value()->make_matcher();
        std::vector<double> times;
        std::vector<std::uint32_t> mask;
        for (const Token token : tokens) {
            const auto start = std::chrono::steady_clock::now();
            CHECK(matcher->compute_mask(mask));
            times.push_back(
                std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                    .count());
            CHECK(matcher->consume(token));
        }
        std::ranges::sort(times);
        std::printf("%zu masks: p50 %.1f us, p90 %.1f, p99 %.1f, longest %.1f\n", times.size(),
                    times[times.size() / 2], times[times.size() * 9 / 10],
                    times[times.size() * 99 / 100], times.back());
    };
    walk(R"({"type":"array","items":{"type":"string"},)" + kGuidance + "}");
    walk(unique_array(kText, kOfTexts));
}

int main() {
    if (!LarkCompiler::available()) return 77;
    return check::run();
}
