// Grammars over real vocabularies: masks, forced tokens, taking back, closing, and what is refused.
// Reads the vocabularies in llama.cpp's source.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "check.h"
#include "core/token_mask.h"
#include "guidance/lark_compiler.h"
#include "llama/describe_vocabulary.h"
#include "llama/gbnf_grammar.h"
#include "llama/model.h"

using namespace fermata;

namespace {

// SentencePiece: llama-spm, phi-3. The others cut by merges, each with another pattern before.
const std::vector<std::string> kVocabularies = {"command-r", "deepseek-coder", "gemma-4", "gpt-2",
                                                "llama-bpe", "llama-spm",      "phi-3",   "qwen2"};

std::string folder() {
    for (const std::string base : {"", "../", "../../"}) {
        const std::string path = base + ".cache/llama.cpp/models/";
        if (std::filesystem::exists(path + "ggml-vocab-gpt-2.gguf")) return path;
    }
    return {};
}

struct Subject {
    std::string name;
    std::shared_ptr<const Model> model;
    std::shared_ptr<const LarkCompiler> compiler;

    std::shared_ptr<const Grammar> lark(const std::string& text) const {
        auto grammar = compiler->compile(text);
        if (!grammar.ok()) check::fail(__FILE__, __LINE__, name + ": " + grammar.error().message);
        return grammar.value();
    }
    std::shared_ptr<const Grammar> gbnf(const std::string& text) const {
        auto grammar = compile_gbnf(model, text);
        if (!grammar.ok()) check::fail(__FILE__, __LINE__, name + ": " + grammar.error().message);
        return grammar.value();
    }
    std::vector<Token> tokenize(const std::string& text) const {
        return model->tokenizer().tokenize_continuation(text);
    }
    std::string text(std::span<const Token> tokens) const {
        return model->tokenizer().detokenize(tokens, false);
    }
    bool is_end(Token token) const { return model->vocabulary().is_end(token); }
};

const std::vector<Subject>& subjects() {
    static const std::vector<Subject> all = [] {
        std::vector<Subject> found;
        for (const std::string& name : kVocabularies) {
            auto model = Model::load({.path = folder() + "ggml-vocab-" + name + ".gguf",
                                      .vocabulary_only = true,
                                      .on_progress = {}});
            if (!model.ok()) check::fail(__FILE__, __LINE__, model.error().message);
            auto compiler = LarkCompiler::create(describe_vocabulary(model.value()));
            if (!compiler.ok()) check::fail(__FILE__, __LINE__, name + compiler.error().message);
            found.push_back({name, model.value(), compiler.value()});
        }
        return found;
    }();
    return all;
}

// How far the tokens are allowed, mask by mask.
std::size_t walk(Matcher& matcher, std::span<const Token> tokens) {
    std::vector<std::uint32_t> mask;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (!matcher.compute_mask(mask)) return i;
        const bool allowed = allows(mask, tokens[i]) || matcher.accepted(tokens.subspan(i, 1)) == 1;
        if (!allowed || !matcher.consume(tokens[i])) return i;
    }
    return tokens.size();
}

// Chooses among what is allowed, shorter pieces as likely as longer ones.
// In pieces of one look each, which come to the same as all at once.
std::optional<std::vector<Token>> close(Matcher& matcher, std::size_t most) {
    std::size_t work = 10'000;
    const Closing whole = matcher.closing(most, work);
    CHECK(whole.done);
    for (std::size_t spent = work; spent < 10'000; ++spent) {
        std::size_t one = 1;
        CHECK(!matcher.closing(most, one).done || spent == 9'999);
        CHECK_EQ(one, std::size_t{0});
    }
    return whole.tokens;
}

Token draw(TokenMask mask, std::mt19937& random) {
    std::vector<Token> allowed;
    for_each_allowed(mask, mask.size() * kMaskWordBits,
                     [&](std::size_t id) { allowed.push_back(static_cast<Token>(id)); });
    return allowed.empty() ? -1 : allowed[random() % allowed.size()];
}

const std::string kPerson =
    R"(start: %json {"type":"object","properties":{"name":{"type":"string","maxLength":20},)"
    R"("tags":{"type":"array","items":{"enum":["räd","日本","a b"]},"maxItems":3},)"
    R"("age":{"type":"integer","minimum":0,"maximum":150}},"required":["name","age"],)"
    R"("additionalProperties":false,"x-guidance":{"whitespace_flexible":false}})";

}  // namespace

TEST(valid_texts_pass_and_invalid_ones_stop_where_they_are_wrong) {
    for (const Subject& subject : subjects()) {
        const auto grammar = subject.lark(kPerson);
        for (const std::string text :
             {R"({"name":"Ada","age":36})", R"({"name":"","tags":[],"age":0})",
              R"({"name":"x y  z","tags":["räd","日本"],"age":150})",
              R"({"name":"\"q\" é 🦀","age":7})"}) {
            const auto matcher = grammar->make_matcher();
            const auto tokens = subject.tokenize(text);
            CHECK_EQ(subject.text(tokens), text);
            const std::size_t passed = walk(*matcher, tokens);
            CHECK_EQ(subject.name + ": " + subject.text(std::span(tokens).first(passed)),
                     subject.name + ": " + text);
            CHECK(matcher->accepting());
        }
        for (const std::string text :
             {R"({"name":"Ada"})", R"({"age":36,"name":"Ada"})", R"({"name":"Ada","age":151})",
              R"({"name":"Ada","tags":["red"],"age":1})", R"({"name":1,"age":1})", "[]"}) {
            const auto matcher = grammar->make_matcher();
            const auto tokens = subject.tokenize(text);
            CHECK(walk(*matcher, tokens) < tokens.size() || !matcher->accepting());
        }
    }
}

TEST(forced_tokens_are_what_the_masks_leave) {
    const std::string lark =
        "start: \"<tool_call>\\n{\\\"name\\\": \\\"\" (\"get_weather\" | \"get_time\") "
        "\"\\\", \\\"arguments\\\": {}}\\n</tool_call>\"";
    for (const Subject& subject : subjects()) {
        const auto grammar = subject.lark(lark);
        const auto matcher = grammar->make_matcher();
        const auto other = grammar->make_matcher();
        std::vector<std::uint32_t> mask;
        std::vector<Token> all;
        std::mt19937 random(1);
        while (!matcher->stopped()) {
            std::vector<Token> next = matcher->forced();
            if (next.empty()) {
                CHECK(matcher->compute_mask(mask));
                next = {draw(mask, random)};
            }
            for (const Token token : next) {
                CHECK(other->compute_mask(mask));
                CHECK(allows(mask, token));
                CHECK(matcher->consume(token) && other->consume(token));
                all.push_back(token);
            }
        }
        CHECK(other->stopped());
        const std::string text = subject.text(all);
        CHECK(text == "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>" ||
              text == "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>");
    }
}

TEST(random_texts_satisfy_the_grammar_and_end_only_where_they_may) {
    const std::regex pattern(R"(\{"name":"[\s\S]*"(,"tags":\[[\s\S]*\])?,"age":\d{1,3}\})");
    for (const Subject& subject : subjects()) {
        const auto grammar = subject.lark(kPerson);
        for (std::uint32_t seed = 0; seed < 5; ++seed) {
            const auto matcher = grammar->make_matcher();
            std::vector<std::uint32_t> mask;
            std::vector<Token> tokens;
            std::mt19937 random(seed);
            while (true) {
                CHECK(matcher->compute_mask(mask));
                const bool may_end = allows(mask, subject.model->vocabulary().end_token());
                CHECK_EQ(may_end, matcher->accepting());
                const Token token = draw(mask, random);
                CHECK(token >= 0);
                CHECK(matcher->consume(token));
                if (subject.is_end(token)) break;
                CHECK(!subject.model->vocabulary().piece(token).empty());
                tokens.push_back(token);
            }
            CHECK(matcher->stopped());
            CHECK(std::regex_match(subject.text(tokens), pattern));
        }
    }
}

TEST(taking_back_leads_to_the_same_masks) {
    for (const Subject& subject : subjects()) {
        const auto matcher = subject.lark(kPerson)->make_matcher();
        std::vector<std::uint32_t> before;
        std::vector<std::uint32_t> after;
        std::mt19937 random(3);
        for (int i = 0; i < 12; ++i) {
            CHECK(matcher->compute_mask(before));
            const Token token = draw(before, random);
            if (subject.is_end(token)) break;
            CHECK(matcher->consume(token));
            std::size_t taken = 1;
            for (; taken < 4 && !matcher->stopped(); ++taken) {
                CHECK(matcher->compute_mask(after));
                CHECK(matcher->consume(draw(after, random)));
            }
            CHECK(matcher->rollback(taken));
            CHECK(matcher->compute_mask(after));
            CHECK(before == after);
            CHECK(matcher->consume(token));
        }
    }
}

TEST(an_end_can_be_taken_back) {
    const Subject& subject = subjects().back();
    const auto matcher = subject.lark("start: \"yes\"")->make_matcher();
    const auto tokens = subject.tokenize("yes");
    CHECK_EQ(walk(*matcher, tokens), tokens.size());
    CHECK(matcher->stopped());
    CHECK(matcher->consume(subject.model->vocabulary().end_token()));
    CHECK(matcher->rollback(1 + tokens.size()));
    CHECK(!matcher->stopped());
    CHECK_EQ(walk(*matcher, tokens), tokens.size());
}

TEST(every_state_of_a_random_text_can_be_closed) {
    for (const Subject& subject : subjects()) {
        const auto grammar = subject.lark(kPerson);
        for (std::uint32_t seed = 0; seed < 3; ++seed) {
            const auto matcher = grammar->make_matcher();
            std::vector<std::uint32_t> mask;
            std::mt19937 random(seed);
            for (int i = 0; i < 20 && !matcher->stopped(); ++i) {
                const auto path = close(*matcher, 60);
                CHECK(path.has_value());
                for (const Token token : *path) {
                    CHECK(matcher->compute_mask(mask));
                    CHECK(allows(mask, token) || matcher->accepted(std::span(&token, 1)) == 1);
                    CHECK(matcher->consume(token));
                }
                CHECK(matcher->accepting());
                CHECK(matcher->rollback(path->size()));
                CHECK(matcher->compute_mask(mask));
                CHECK(matcher->consume(draw(mask, random)));
            }
        }
    }
}

TEST(free_text_is_closed_by_what_the_grammar_ends_it_with) {
    const Subject& subject = subjects().back();
    const auto matcher =
        subject.lark("start: \"<p>\\n\" text\ntext[suffix=\"\\n</p>\"]: /(.|\\n)*/")
            ->make_matcher();
    const auto tokens = subject.tokenize("<p>\nsome \"text\" <");
    CHECK_EQ(walk(*matcher, tokens), tokens.size());
    const auto path = close(*matcher, 20);
    CHECK(path.has_value());
    CHECK_EQ(subject.text(*path), std::string("\n</p>"));
}

TEST(digits_without_an_end_are_closed_by_what_follows_them) {
    const std::vector<std::pair<const char*, const char*>> patterns = {
        {"start: /[0-9]+-[a-z]+/", R"(\d+-[a-z]+)"},
        {"start: /[0-9]{10}x/", R"(\d{10}x)"},
        {R"(start: %json {"type":"string","pattern":"^[0-9]+ [A-Z][0-9]+$"})",
         R"x("\d+ [A-Z]\d+")x"},
    };
    for (const Subject& subject : subjects()) {
        for (const auto& [lark, pattern] : patterns) {
            const auto path = close(*subject.lark(lark)->make_matcher(), 20);
            CHECK(path);
            CHECK(std::regex_match(subject.text(*path), std::regex(pattern)));
        }
    }
}

TEST(control_tokens_are_named_and_match_no_text) {
    const Subject& subject = subjects().back();
    Token control = -1;
    for (const SpecialToken& each : subject.model->vocabulary().special_tokens()) {
        if (each.kind == SpecialKind::kControl && !subject.is_end(each.id)) control = each.id;
    }
    CHECK(control >= 0);
    std::vector<std::uint32_t> mask;
    const auto text = subject.lark("start: /(.|\\n)*/")->make_matcher();
    CHECK(text->compute_mask(mask));
    CHECK(!allows(mask, control));
    const auto named =
        subject.lark("start: <[" + std::to_string(control) + "]> \"x\"")->make_matcher();
    CHECK(named->compute_mask(mask));
    CHECK(allows(mask, control));
    CHECK(named->consume(control));
    CHECK(named->compute_mask(mask));
    CHECK(allows(mask, subject.tokenize("x")[0]));
}

TEST(gbnf_guides_the_same_way) {
    const std::string text = "root ::= \"{\" [a-z]+ (\",\" [a-z]+){0,2} \"}\" # a comment\n";
    for (const Subject& subject : subjects()) {
        if (subject.name != "llama-spm" && subject.name != "gpt-2") continue;  // a mask takes long
        const auto grammar = subject.gbnf(text);
        for (std::uint32_t seed = 0; seed < 2; ++seed) {
            const auto matcher = grammar->make_matcher();
            std::vector<std::uint32_t> mask;
            std::vector<Token> tokens;
            std::mt19937 random(seed);
            while (!matcher->stopped() && tokens.size() < 30) {
                CHECK(matcher->compute_mask(mask));
                CHECK_EQ(allows(mask, subject.model->vocabulary().end_token()),
                         matcher->accepting());
                tokens.push_back(draw(mask, random));
                CHECK(matcher->consume(tokens.back()));
            }
            CHECK(std::regex_match(subject.text(tokens),
                                   std::regex(R"(\{[a-z]+(,[a-z]+){0,2}\}|\{[a-z,]*)")));
            CHECK(matcher->rollback(tokens.size()));
            CHECK(matcher->rollback(0));
            const auto valid = subject.tokenize("{ab,c}");
            // It would have to read all again to take them back.
            CHECK_EQ(matcher->accepted(valid), 0u);
            CHECK_EQ(walk(*matcher, valid), valid.size());
            CHECK(matcher->accepting());
            CHECK(!matcher->consume(valid[0]));
            CHECK(!matcher->error().empty());
        }
    }
}

TEST(gbnf_allows_the_control_tokens_that_it_names) {
    const Subject& subject = *std::ranges::find(subjects(), "llama-spm", &Subject::name);
    const Token begin = subject.model->vocabulary().bos_token();
    const Token unknown = 0;
    for (const std::string& name : {std::string("<s>"), "<[" + std::to_string(begin) + "]>"}) {
        const auto matcher =
            subject.gbnf("root ::= " + name + " [^x]{1,9} \"<|\"?\n")->make_matcher();
        std::vector<std::uint32_t> mask;
        CHECK(matcher->compute_mask(mask));
        std::size_t allowed = 0;
        for_each_allowed(mask, mask.size() * kMaskWordBits, [&](std::size_t) { ++allowed; });
        CHECK_EQ(allowed, 1u);
        CHECK(allows(mask, begin));
        CHECK(matcher->consume(begin));
        CHECK(matcher->compute_mask(mask));
        // Its spelling would fit, and nobody would see it.
        CHECK(!allows(mask, unknown));
        CHECK(allows(mask, subject.tokenize("a")[0]));
    }
}

TEST(gbnf_that_llama_cpp_could_not_bear_is_refused) {
    const Subject& subject = subjects().back();
    std::string doubling = "root ::= r40\nr0 ::= \"x\"?\n";
    for (int i = 1; i <= 40; ++i) {
        const std::string before = "r" + std::to_string(i - 1);
        doubling += "r" + std::to_string(i) + " ::= " + before + " " + before + "\n";
    }
    std::string chain = "root ::= a0\n";
    for (int i = 0; i < 6000; ++i)
        chain += "a" + std::to_string(i) + " ::= a" + std::to_string(i + 1) + "\n";
    for (const std::string& text :
         {std::string(""),
          std::string("root"),
          std::string("root ::="),
          std::string("root ::= \"a"),
          std::string("root ::= missing"),
          std::string("other ::= \"a\""),
          std::string("root ::= root \"a\" | \"b\""),
          std::string("root ::= e root \"a\" | \"b\"\ne ::= \"x\"?"),
          std::string("root ::= \"a\"{5,2}"),
          std::string("root ::= \"a\"{99999999999999999999}"),
          std::string("root ::= \"a\"{100000}"),
          std::string("root ::= [a"),
          std::string("root ::= \"\\q\""),
          std::string("root ::= \"\\x4\""),
          std::string("root ::= *"),
          std::string("root ::= x\nx ::= \"a\" x \"b\" | \"a\" x \"c\" | \"\""),
          "root ::= " + std::string(100000, '('),
          doubling,
          chain,
          std::string(1 << 20, 'a')}) {
        auto grammar = compile_gbnf(subject.model, text);
        const bool empty_rule = text == "root ::=";
        if (grammar.ok() != empty_rule) check::fail(__FILE__, __LINE__, text.substr(0, 60));
    }
}

TEST(gbnf_of_usual_shapes_is_not_refused) {
    const std::string json = R"gbnf(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";
    const std::string arithmetic = R"gbnf(
root ::= (expr "=" term "\n")+
expr ::= term ([-+*/] term)*
term ::= num | "(" expr ")"
num  ::= [0-9]+
)gbnf";
    const std::string list = "root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\u2028]+ \"\\n\"\n";
    for (const std::string& text : {json, arithmetic, list})
        CHECK(subjects().back().gbnf(text) != nullptr);
}

TEST(lark_that_costs_too_much_is_refused_or_works) {
    const Subject& subject = subjects().back();
    const std::vector<std::string> texts = {
        "start: " + std::string(50'000, '('),
        "start: /" + std::string(20'000, '(') + "/",
        "start: /(a{1,9999}){1,9999}/",
        "start: /(.*a){40}b/",
        "start: /([a-z]*[0-9]*){300}x/ /y/",
        "start: \"" + std::string(3 << 20, 'a') + "\"",
        "start: start start | \"a\"",
        "start: %json {\"type\":\"string\",\"maxLength\":1000000000}",
        "start: %json {\"$ref\":\"#\"}",
        "start: %json "
        "{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"}]}},\"$ref\":\"#/$defs/a\"}",
        std::string("start: \"a\0b\"", 12)};
    for (const std::string& text : texts) {
        auto grammar = subject.compiler->compile(text);
        if (!grammar.ok()) {
            CHECK(!grammar.error().message.empty());
            continue;
        }
        const auto matcher = grammar.value()->make_matcher();
        std::vector<std::uint32_t> mask;
        std::mt19937 random(1);
        for (int i = 0; i < 20 && matcher->compute_mask(mask); ++i)
            matcher->consume(draw(mask, random));
    }
}

int main() {
    if (folder().empty() || !LarkCompiler::available()) return 77;
    return check::run();
}
