// llguidance over a small vocabulary, so that it can run under the sanitizers: what threads share,
// and limits. Real vocabularies: llama_guidance.cpp.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "core/token_mask.h"
#include "guidance/grammar_limits.h"
#include "guidance/lark_compiler.h"

using namespace fermata;

namespace {

constexpr Token kEnd = 256;
constexpr Token kMarker = 257;

// Every byte but 0xFF, two end tokens and a marker.
std::shared_ptr<const LarkCompiler> make_compiler() {
    VocabularyDescription vocabulary;
    for (int byte = 0; byte < 256; ++byte)
        vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
    vocabulary.tokens[255] = std::string(1, kUnmatchable) + "<0xFF>";
    vocabulary.tokens.push_back(std::string(1, kUnmatchable) + "<end>");
    vocabulary.tokens.push_back(std::string(1, kUnmatchable) + "<marker>");
    vocabulary.tokens.push_back(std::string(1, kUnmatchable) + "<turn>");
    vocabulary.end_tokens = {kEnd, 258};
    vocabulary.tokenize = [](std::string_view text) {
        std::vector<Token> tokens;
        for (const char letter : text)
            tokens.push_back(static_cast<unsigned char>(letter));
        return tokens;
    };
    auto compiler = LarkCompiler::create(std::move(vocabulary));
    if (!compiler.ok()) check::fail(__FILE__, __LINE__, compiler.error().message);
    return compiler.value();
}

bool follow(Matcher& matcher, const std::string& text) {
    std::vector<std::uint32_t> mask;
    for (const char letter : text) {
        const Token token = static_cast<unsigned char>(letter);
        if (!matcher.compute_mask(mask) || !allows(mask, token) || !matcher.consume(token))
            return false;
    }
    return true;
}

}  // namespace

TEST(matchers_of_one_grammar_go_their_own_ways_on_their_own_threads) {
    const auto compiler = make_compiler();
    auto grammar = compiler->compile(R"(start: %json {"type":"array","items":{"type":"integer"}})");
    CHECK(grammar.ok());
    std::atomic<int> followed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5; ++round) {
                const auto matcher = grammar.value()->make_matcher();
                followed += follow(*matcher, "[" + std::to_string(i) + ",10]") &&
                            matcher->accepting() && matcher->stopped();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK_EQ(followed.load(), 20);
}

TEST(a_long_text_of_limited_length_does_not_end_at_the_limit_of_lexer_states) {
    const auto compiler = make_compiler();
    auto grammar = compiler->compile(R"(start: %json {"type":"string","maxLength":20000})");
    CHECK(grammar.ok());
    const auto matcher = grammar.value()->make_matcher();
    CHECK(follow(*matcher, "\"" + std::string(20000, 'a')));
    CHECK_EQ(matcher->error(), "");
    std::vector<std::uint32_t> mask;
    CHECK(matcher->compute_mask(mask));
    CHECK(allows(mask, '"'));
    CHECK(!allows(mask, 'a'));
    CHECK(matcher->rollback(1));
    CHECK(matcher->compute_mask(mask));
    CHECK(allows(mask, 'a'));
    CHECK(follow(*matcher, "b\""));
    CHECK(matcher->stopped());
}

TEST(grammars_compile_side_by_side) {
    const auto compiler = make_compiler();
    std::atomic<int> compiled = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5; ++round) {
                auto grammar = compiler->compile("start: \"a\" /[0-9]{" + std::to_string(i + 1) +
                                                 "}/ <[257]>");
                compiled += grammar.ok();
                auto wrong = compiler->compile("start: nothing");
                compiled -= wrong.ok();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK_EQ(compiled.load(), 20);
}

TEST(a_matcher_outlives_its_grammar_and_its_compiler) {
    auto compiler = make_compiler();
    std::unique_ptr<Matcher> matcher;
    {
        auto grammar = compiler->compile("start: \"abc\" <[257]>");
        CHECK(grammar.ok());
        matcher = grammar.value()->make_matcher();
    }
    compiler.reset();
    CHECK(matcher->forced() == (std::vector<Token>{'a', 'b', 'c', kMarker}));
    CHECK(follow(*matcher, "abc"));
    CHECK(!matcher->accepting());
    CHECK(matcher->consume(kMarker));
    CHECK(matcher->stopped());
    std::vector<std::uint32_t> mask;
    CHECK(matcher->compute_mask(mask));
    CHECK(allows(mask, kEnd) && allows(mask, 258) && !allows(mask, 'a'));
}

TEST(a_token_that_is_not_allowed_is_an_error_that_stays) {
    const auto compiler = make_compiler();
    auto grammar = compiler->compile("start: \"abc\"");
    CHECK(grammar.ok());
    const auto matcher = grammar.value()->make_matcher();
    CHECK(!matcher->consume('x'));
    CHECK(!matcher->error().empty());
    std::vector<std::uint32_t> mask;
    CHECK(!matcher->compute_mask(mask));
    CHECK(!matcher->consume('a'));
    std::size_t work = 100;
    CHECK(!matcher->closing(5, work).tokens);
}

TEST(tokens_of_a_grammar_with_stop_or_max_tokens_are_taken_back_too) {
    const auto compiler = make_compiler();
    for (const std::string body :
         {R"(body[stop="</a>"]: /(.|\n)*/)", R"(body[max_tokens=9]: /(.|\n)*/)"}) {
        auto grammar = compiler->compile("start: \"<a>\" body \"</b>\"\n" + body);
        CHECK(grammar.ok());
        const auto matcher = grammar.value()->make_matcher();
        CHECK(follow(*matcher, "<a>some"));
        std::vector<std::uint32_t> before;
        std::vector<std::uint32_t> after;
        CHECK(matcher->compute_mask(before));
        CHECK(follow(*matcher, " te"));
        CHECK(matcher->rollback(3));
        CHECK(matcher->compute_mask(after));
        CHECK(before == after);
        std::size_t work = 100;
        CHECK(!matcher->closing(20, work).tokens);
        CHECK_EQ(matcher->accepted(std::vector<Token>{'x'}), std::size_t{0});
        CHECK_EQ(matcher->error(), std::string());
        CHECK(follow(*matcher, " text"));
    }
}

TEST(what_is_too_large_or_too_deep_is_not_parsed) {
    CHECK(grammar_fault(std::string(kMaxGrammarBytes + 1, ' '))->code ==
          ErrorCode::kGrammarTooLarge);
    CHECK(grammar_fault("start: " + std::string(kMaxGrammarDepth + 1, '['))->code ==
          ErrorCode::kGrammarTooLarge);
    CHECK(grammar_fault(std::string("a\0b", 3))->code == ErrorCode::kGrammarInvalid);
    CHECK(!grammar_fault("start: \"a\""));
}

// The compiler descends a level for each reference, whatever the brackets.
std::string chain_of_rules(std::size_t count) {
    std::string text = "start: a0\n";
    for (std::size_t i = 0; i + 1 < count; ++i)
        text += "a" + std::to_string(i) + ": a" + std::to_string(i + 1) + "\n";
    return text + "a" + std::to_string(count - 1) + ": \"x\"\n";
}

std::string chain_of_schemas(std::size_t count) {
    std::string text = R"(start: %json {"$ref":"#/$defs/a0","$defs":{)";
    for (std::size_t i = 0; i + 1 < count; ++i)
        text +=
            "\"a" + std::to_string(i) + R"(":{"$ref":"#/$defs/a)" + std::to_string(i + 1) + "\"},";
    return text + "\"a" + std::to_string(count - 1) + "\":{\"const\":\"x\"}}}";
}

TEST(a_chain_of_references_as_long_as_a_text_can_hold_does_not_end_the_process) {
    const auto compiler = make_compiler();
    using Chain = std::pair<std::string (*)(std::size_t), const char*>;
    for (const auto& [chain, text] :
         {Chain(chain_of_rules, "x"), Chain(chain_of_schemas, "\"x\"")}) {
        for (const std::size_t count : {3'000u, 50'000u}) {
            auto grammar = compiler->compile(chain(count));
            if (grammar.ok()) {
                CHECK(follow(*grammar.value()->make_matcher(), text));
            } else {
                CHECK(grammar.error().code == ErrorCode::kGrammarTooLarge);
                CHECK(grammar.error().message.size() < 1100);
            }
        }
    }
}

int main() {
    if (!LarkCompiler::available()) return 77;
    return check::run();
}
