// Arrays whose items must all differ, over a small vocabulary with tokens that end one item and
// begin the next. src/guidance/schema/write/unique.ts writes such grammars; on real vocabularies:
// llama_unique.cpp.
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "core/token_mask.h"
#include "guidance/lark_compiler.h"
#include "unique_arrays.h"

using namespace fermata;

namespace {

constexpr Token kEnd = 256;

const std::vector<std::string> kLonger = {
    "[\"",    "\"]",   "\",",   "\",\"", "\", \"",    ", \"",         "ab",   "a\"",
    "b\",\"", "\"a\"", "[\"a",  "[7",    ",\"a",      "\"a\",",       "1,",   ",1",
    "10",     ",10,",  "0]",    "},{",   "\"},{",     "{\"",          "\":",  "\":\"",
    "\"}",    "}]",    "\\u00", "61\"",  "a\",\"a\"", "[\"a\",\"a\"", "\\\"", "\"b\"",
    "bb",     "aa",    "]}",    "1]",    "\":[\"",    "null,",        ",null"};

VocabularyDescription describe() {
    VocabularyDescription vocabulary;
    for (int byte = 0; byte < 256; ++byte)
        vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
    vocabulary.tokens[255] = std::string(1, kUnmatchable) + "<0xFF>";
    vocabulary.tokens.push_back(std::string(1, kUnmatchable) + "<end>");
    vocabulary.tokens.insert(vocabulary.tokens.end(), kLonger.begin(), kLonger.end());
    vocabulary.end_tokens = {kEnd};
    vocabulary.tokenize = [](std::string_view text) {
        std::vector<Token> tokens;
        for (const char letter : text)
            tokens.push_back(static_cast<unsigned char>(letter));
        return tokens;
    };
    return vocabulary;
}

struct Subject {
    VocabularyDescription vocabulary = describe();
    std::shared_ptr<const LarkCompiler> compiler = LarkCompiler::create(describe()).value();

    std::shared_ptr<const Grammar> json(const std::string& schema) const {
        auto grammar = compiler->compile("start: %json " + schema);
        if (!grammar.ok()) check::fail(__FILE__, __LINE__, grammar.error().message);
        return grammar.value();
    }
    // The tokens that a mask allows behind a text, which is written byte by byte.
    std::set<std::string> allowed(const Grammar& grammar, const std::string& text) const {
        const auto found = after(grammar, text);
        if (!found) check::fail(__FILE__, __LINE__, "refused: " + text);
        return *found;
    }
    std::optional<std::set<std::string>> after(const Grammar& grammar,
                                               const std::string& text) const {
        const auto matcher = grammar.make_matcher();
        std::vector<std::uint32_t> mask;
        for (const char letter : text) {
            const Token token = static_cast<unsigned char>(letter);
            if (!matcher->compute_mask(mask) || !allows(mask, token) || !matcher->consume(token))
                return std::nullopt;
        }
        CHECK(matcher->compute_mask(mask));
        std::set<std::string> found;
        for_each_allowed(mask, vocabulary.tokens.size(),
                         [&](std::size_t id) { found.insert(vocabulary.tokens[id]); });
        return found;
    }
};

const Subject& subject() {
    static const Subject one;
    return one;
}

bool accepts(const Grammar& grammar, const std::string& text) {
    const auto after = subject().after(grammar, text);
    return after && after->size() == 1 && after->begin()->front() == kUnmatchable;
}

}  // namespace

TEST(an_item_is_not_repeated_in_whatever_tokens_it_comes) {
    const auto grammar = subject().json(unique_array(R"({"type":"string"})", kOfTexts));
    for (const std::string text : {R"(["a","b","ab","aa",""])", R"([])", R"(["a"])"})
        CHECK(accepts(*grammar, text));
    CHECK(!accepts(*grammar, R"(["a","a"])"));
    const auto first = subject().allowed(*grammar, "");
    CHECK(first.contains("[") && first.contains("[\"") && first.contains("[\"a"));
    CHECK(!first.contains("[7") && !first.contains("[\"a\",\"a\""));
    CHECK(!subject().allowed(*grammar, "[").contains("7"));
    const auto second = subject().allowed(*grammar, R"(["a",)");
    CHECK(second.contains("\"") && second.contains("\"b\""));
    CHECK(!second.contains("\"a\"") && !second.contains("\"a\","));
    const auto inside = subject().allowed(*grammar, R"(["a","b","a)");
    CHECK(!inside.contains("\"") && !inside.contains("\",") && !inside.contains("\",\""));
    CHECK(inside.contains("a") && inside.contains("a\"") && inside.contains("b\",\""));
    // Here it ends an item as well, but none that was there.
    CHECK(subject().allowed(*grammar, R"(["a","c)").contains("\",\""));
    CHECK(!subject().allowed(*grammar, R"(["b","c)").contains("a\",\"a\"") ||
          !subject().allowed(*grammar, R"(["ca","c)").contains("a\",\"a\""));
}

TEST(another_spelling_of_a_value_is_the_same_value) {
    const auto texts = subject().json(unique_array(R"({"type":"string"})", kOfTexts));
    CHECK(!subject().allowed(*texts, R"(["\n","\u000a)").contains("\""));
    CHECK(!subject().allowed(*texts, R"(["\u000a","\n)").contains("\""));
    CHECK(subject().allowed(*texts, R"(["\n","\u0009)").contains("\""));
    CHECK(!subject().allowed(*texts, R"(["\"","\)").contains("\"\""));
    const auto numbers = subject().json(unique_array(R"({"type":"number"})", kOfNumbers));
    for (const std::string same : {"1", "1.0", "1e0", "10e-1", "1.00"}) {
        const auto after = subject().allowed(*numbers, "[1," + same);
        CHECK(!after.contains(",") && !after.contains("]"));
        CHECK(after.contains("1"));
    }
    CHECK(accepts(*numbers, "[1,10,0.1,1.5,-1]"));
    CHECK(!accepts(*numbers, "[0,-0]"));
}

TEST(an_item_is_not_begun_that_could_only_end_as_an_earlier_one) {
    const auto few = subject().json(unique_array(R"({"type":"string","pattern":"^(?:ab|ac|b)$"})",
                                                 kOfTexts, R"("maxItems":3)"));
    CHECK(!subject().allowed(*few, R"(["ab","ac",")").contains("a"));
    CHECK(subject().allowed(*few, R"(["ab",")").contains("a"));
    CHECK(!subject().allowed(*few, R"(["ab","a)").contains("b"));
    CHECK(!subject().allowed(*few, R"(["b",")").contains("b"));
    CHECK(accepts(*few, R"(["b","ac","ab"])"));
    const auto integers =
        subject().json(unique_array(R"({"type":"integer","minimum":0,"maximum":19})", kOfNumbers));
    CHECK(subject().allowed(*integers, "[1,").contains("1"));
    CHECK(!subject().allowed(*integers, "[1,10,11,12,13,14,15,16,17,18,19,").contains("1"));
    CHECK(subject().allowed(*integers, "[1,10,11,12,13,14,15,16,17,18,19,").contains("2"));
    const auto signs = subject().json(unique_array(R"({"type":"integer"})", kOfNumbers));
    CHECK(!subject().allowed(*signs, "[0,-").contains("0"));
}

TEST(objects_and_arrays_are_compared_by_what_they_say) {
    const auto objects = subject().json(unique_array(
        R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},)"
        R"("additionalProperties":false,"required":["a"]})",
        kOfTexts));
    CHECK(accepts(*objects, R"([{"a":"x"},{"a":"x","b":1},{"a":"y"}])"));
    const auto second = subject().allowed(*objects, R"([{"a":"x"},{"a":"x")");
    CHECK(!second.contains("}") && second.contains(","));
    const auto third = subject().allowed(*objects, R"([{"a":"x","b":1},{"a":"x","b":1)");
    CHECK(!third.contains("}") && third.contains("0"));
    const auto open = subject().json(
        unique_array(R"({"type":"object","additionalProperties":{"type":"integer"}})", kOfTexts));
    CHECK(!subject().allowed(*open, R"([{"x":1,"y":2},{"y":2,"x":1)").contains("}"));
    CHECK(subject().allowed(*open, R"([{"x":1,"y":2},{"y":2,"x":3)").contains("}"));
    const auto nested = subject().json(
        unique_array(unique_array(R"({"type":"string"})", kOfTexts, "", true), kOfTexts));
    CHECK(accepts(*nested, R"([["a"],["b"],["a","b"]])"));
    CHECK(!subject().allowed(*nested, R"([["a"],["a")").contains("]"));
    CHECK(!subject().allowed(*nested, R"([["a"],["b","b)").contains("\""));
    CHECK(subject().allowed(*nested, R"([["a"],["b","a)").contains("\""));
}

TEST(other_arrays_may_repeat_items_and_so_may_texts_that_look_like_arrays) {
    const std::string items = R"({"type":"string"})";
    const auto both = subject().json(
        R"({"type":"object","properties":{"free":{"type":"array","items":)" + items +
        R"(},"unique":)" + unique_array(items, kOfTexts, "", true) +
        R"(},"required":["free","unique"],"additionalProperties":false,)" + kGuidance + "}");
    CHECK(accepts(*both, R"({"free":["a","a"],"unique":["a","b"]})"));
    CHECK(!accepts(*both, R"({"free":["a","a"],"unique":["a","a"]})"));
    auto text =
        subject().compiler->compile("start: /[^}]*/ \"}\" %json " + unique_array(items, kOfTexts));
    CHECK(text.ok());
    CHECK(accepts(*text.value(), R"(["a","a"],[7919283746501]}["a","b"])"));
    CHECK(!accepts(*text.value(), R"(["a","a"]}["a","a"])"));
}

// The mask behind a text, whatever way the matcher came there.
TEST(masks_forced_tokens_and_drafts_are_the_same_after_going_back) {
    const auto grammar = subject().json(
        unique_array(R"({"type":"string","pattern":"^[ab]{1,2}$"})", kOfTexts, R"("maxItems":6)"));
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
        const auto matcher = grammar->make_matcher();
        std::vector<Token> text;
        std::vector<std::uint32_t> mask;
        std::vector<std::uint32_t> again;
        while (!matcher->stopped()) {
            CHECK(matcher->compute_mask(mask));
            const auto fresh = grammar->make_matcher();
            for (const Token token : text)
                CHECK(fresh->consume(token));
            CHECK(fresh->compute_mask(again));
            CHECK(mask == again);
            std::vector<Token> allowed;
            for_each_allowed(mask, subject().vocabulary.tokens.size(),
                             [&](std::size_t id) { allowed.push_back(static_cast<Token>(id)); });
            for (const Token& token : allowed)
                if (token != kEnd)
                    CHECK_EQ(matcher->accepted(std::span(&token, 1)), std::size_t{1});
            const std::vector<Token> forced = matcher->forced();
            CHECK_EQ(matcher->accepted(forced), forced.size());
            if (!text.empty() && random() % 3 == 0) {
                const std::size_t count = 1 + random() % text.size();
                CHECK(matcher->rollback(count));
                text.resize(text.size() - count);
                continue;
            }
            const Token token = allowed[random() % allowed.size()];
            CHECK(matcher->consume(token));
            if (token == kEnd) break;
            text.push_back(token);
        }
        std::string written;
        for (const Token token : text)
            written += subject().vocabulary.tokens[static_cast<std::size_t>(token)];
        CHECK(has_different_items(written));
    }
}

TEST(an_end_that_is_looked_for_repeats_no_item) {
    const auto grammar = subject().json(
        unique_array(R"({"type":"string","pattern":"^[ab]$|^c+$"})", kOfTexts, R"("minItems":4)"));
    const auto matcher = grammar->make_matcher();
    for (const char letter : std::string(R"(["a",)"))
        CHECK(matcher->consume(static_cast<unsigned char>(letter)));
    std::size_t work = 5000;
    const Closing closing = matcher->closing(60, work);
    CHECK(closing.tokens.has_value());
    std::string written = R"(["a",)";
    for (const Token token : *closing.tokens)
        written += subject().vocabulary.tokens[static_cast<std::size_t>(token)];
    CHECK(accepts(*grammar, written));
    CHECK(has_different_items(written));
}

int main() {
    if (!LarkCompiler::available()) return 77;
    return check::run();
}
