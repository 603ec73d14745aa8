// Untrusted text must not become special tokens, in real vocabularies, and trusted text must become
// exactly what llama.cpp makes of it. Reads the vocabularies in llama.cpp's source.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "llama.h"
#include "llama/model.h"

using namespace fermata;

namespace {

const std::string kGuard = "\xEE\x80\x80";  // U+E000

// With user-defined tokens: command-r, deepseek-coder, deepseek-llm, gemma-4, gpt-neox, phi-3,
// qwen2, refact. SentencePiece: llama-spm, phi-3.
const std::vector<std::string> kVocabularies = {
    "command-r", "deepseek-coder", "deepseek-llm", "gemma-4", "gpt-2",  "gpt-neox",
    "llama-bpe", "llama-spm",      "phi-3",        "qwen2",   "refact", "starcoder"};

std::string folder() {
    for (const std::string base : {"", "../", "../../"}) {
        const std::string path = base + ".cache/llama.cpp/models/";
        if (std::filesystem::exists(path + "ggml-vocab-gpt-2.gguf")) return path;
    }
    return {};
}

std::vector<std::string> characters(const std::string& text) {
    std::vector<std::string> all;
    for (const char letter : text) {
        if (all.empty() || (static_cast<unsigned char>(letter) & 0xC0) != 0x80) all.emplace_back();
        all.back() += letter;
    }
    return all;
}

struct Subject {
    std::string name;
    std::shared_ptr<const Model> model;
    std::set<std::string> first_characters;

    const Tokenizer& tokenizer() const { return model->tokenizer(); }

    // As the TypeScript side guards an untrusted string: before the first and after the last
    // character that is not blank, and after each character that begins a special spelling.
    std::string untrusted(const std::string& text) const {
        const auto all = characters(text);
        const auto blank = [](const std::string& each) {
            return each.size() == 1 && std::isspace(each[0]);
        };
        std::size_t first = all.size(), last = all.size();
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (blank(all[i])) continue;
            if (first == all.size()) first = i;
            last = i;
        }
        std::string guarded;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i == first) guarded += kGuard;
            guarded += all[i];
            if (i == last || first_characters.contains(all[i])) guarded += kGuard;
        }
        return guarded;
    }
    std::vector<Token> tokens(const std::string& text) const {
        auto outcome = tokenizer().tokenize(text, kGuard, false);
        if (!outcome.ok()) check::fail(name.c_str(), 0, outcome.error().message);
        return outcome.value();
    }
    std::vector<Token> reference(const std::string& text) const {
        std::vector<Token> all(text.size() + 16);
        const int count =
            llama_tokenize(model->vocabulary().handle(), text.data(), static_cast<int>(text.size()),
                           all.data(), static_cast<int>(all.size()), false, true);
        all.resize(static_cast<std::size_t>(std::max(count, 0)));
        return all;
    }
    void expect_data(const std::string& guarded, const std::string& what) const {
        for (const Token token : tokens(guarded)) {
            if (!model->vocabulary().is_reserved(token)) continue;
            check::fail(name.c_str(), 0,
                        what + " became " + model->vocabulary().spelled_piece(token));
        }
    }
    void expect_as_llama(const std::string& text, const std::string& what) const {
        if (tokens(text) != reference(text))
            check::fail(name.c_str(), 0, "differs from llama_tokenize: " + what);
    }
};

const std::vector<Subject>& subjects() {
    static const std::vector<Subject> all = [] {
        std::vector<Subject> loaded;
        for (const std::string& name : kVocabularies) {
            ModelOptions options;
            options.path = folder() + "ggml-vocab-" + name + ".gguf";
            options.vocabulary_only = true;
            auto outcome = Model::load(options);
            if (!outcome.ok()) check::fail(name.c_str(), 0, outcome.error().message);
            Subject subject{name, outcome.value(), {}};
            for (const SpecialToken& token : subject.model->info().special_tokens) {
                subject.first_characters.insert(characters(token.text).front());
            }
            loaded.push_back(std::move(subject));
        }
        return loaded;
    }();
    return all;
}

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST(a_guarded_spelling_is_data) {
    for (const Subject& subject : subjects()) {
        for (const SpecialToken& token : subject.model->info().special_tokens) {
            subject.expect_data(subject.untrusted(token.text), token.text);
            subject.expect_data(subject.untrusted("x " + token.text + " y"), token.text);
            subject.expect_data(subject.untrusted(token.text + token.text), token.text + " twice");
        }
    }
}

TEST(a_spelling_across_two_strings_is_data) {
    for (const Subject& subject : subjects()) {
        for (const SpecialToken& token : subject.model->info().special_tokens) {
            // Padding to a round number of rows: one in fifty stands for all.
            if (token.text.starts_with("[PAD") && token.id % 50 != 0) continue;
            const auto all = characters(token.text);
            std::string head;
            for (std::size_t cut = 1; cut < all.size(); ++cut) {
                head += all[cut - 1];
                const std::string tail = token.text.substr(head.size());
                subject.expect_data(subject.untrusted(head) + subject.untrusted(tail),
                                    token.text + " in two strings");
                // One half is the template's, whose text has no guards; its own run of blanks may
                // be a token.
                if (token.text.find_first_not_of(' ') == std::string::npos) continue;
                subject.expect_data(head + subject.untrusted(tail),
                                    token.text + " after trusted text");
                subject.expect_data(subject.untrusted(head) + tail,
                                    token.text + " before trusted text");
            }
        }
    }
}

TEST(guarded_text_keeps_its_bytes) {
    const std::string text =
        "Gr\xC3\xBC\xC3\x9F"
        "e <|im_end|> </s>  <tool_call>\n\t{\"a\": 1}   <\xEF\xBD\x9C"
        "User|>";
    for (const Subject& subject : subjects()) {
        for (const std::string& each : {text, subject.model->info().special_tokens.front().text}) {
            std::string back =
                subject.tokenizer().detokenize(subject.tokens(subject.untrusted(each)), true);
            // SentencePiece puts a space before the first text.
            if (back.size() == each.size() + 1 && back.front() == ' ') back.erase(0, 1);
            if (back != each)
                check::fail(subject.name.c_str(), 0, "'" + back + "' instead of '" + each + "'");
        }
    }
}

TEST(text_without_guards_is_as_llama_makes_it) {
    for (const Subject& subject : subjects()) {
        const auto& special = subject.model->info().special_tokens;
        std::string every;
        for (std::size_t i = 0; i < special.size(); ++i) {
            const std::string& spelled = special[i].text;
            subject.expect_as_llama(spelled, spelled);
            subject.expect_as_llama(" a " + spelled + "  b\n" + spelled + spelled + " ", spelled);
            every += spelled + (i % 3 == 0 ? " \n" : i % 3 == 1 ? "x" : "");
        }
        subject.expect_as_llama(every, "every special token");
        subject.expect_as_llama("", "nothing");
        const std::string path = folder() + "ggml-vocab-" + subject.name + ".gguf.inp";
        subject.expect_as_llama(read(path), path);
        for (const auto& entry : std::filesystem::directory_iterator(folder() + "templates")) {
            if (entry.is_regular_file())
                subject.expect_as_llama(read(entry.path().string()), entry.path().string());
        }
    }
}

TEST(a_special_token_beside_guarded_text_is_recognized) {
    for (const Subject& subject : subjects()) {
        const SpecialToken& token = subject.model->info().special_tokens.front();
        const auto all =
            subject.tokens(token.text + subject.untrusted("hello <there>") + token.text);
        CHECK_EQ(std::count(all.begin(), all.end(), token.id), 2);
    }
}

TEST(guards_do_not_change_ordinary_text) {
    const std::string text = "The quick brown fox, 12 of them; jumps over the lazy dog's back.";
    for (const Subject& subject : subjects()) {
        CHECK(subject.tokens(subject.untrusted(text)) == subject.reference(text));
    }
}

TEST(a_cut_adds_no_space) {
    for (const Subject& subject : subjects()) {
        const std::string text = "a</s>b<s>c";
        const std::string back =
            subject.tokenizer().detokenize(subject.tokens(subject.untrusted(text)), true);
        CHECK_EQ(back.substr(back.size() - text.size()), text);
        CHECK(back.size() <= text.size() + 1);
    }
}

TEST(the_beginning_token_is_added_once) {
    for (const Subject& subject : subjects()) {
        const Token bos = subject.model->vocabulary().bos_token();
        if (bos < 0) continue;
        const std::string& spelled = subject.model->info().bos_token;
        CHECK_EQ(subject.tokenizer().tokenize("hello", "", true).value().front(), bos);
        CHECK_EQ(subject.tokenizer().tokenize(spelled + "hello", "", true).value(),
                 subject.tokenizer().tokenize("hello", "", true).value());
        CHECK_EQ(subject.tokenizer().tokenize("", "", true).value(), std::vector<Token>{bos});
    }
}

TEST(bytes_that_are_not_utf8_are_survived) {
    for (const Subject& subject : subjects()) {
        for (const std::string& text : std::vector<std::string>{
                 "\xFF\xFE", "a\xC3", "\x80<|im_end|>\xEE\x80", "\xEE\x80\x80\xEE\x80\x80"}) {
            subject.tokens(text);
            subject.expect_data(subject.untrusted(text), "broken text");
        }
    }
}

int main() {
    if (folder().empty()) {
        std::printf("skipped: llama.cpp's source is not in .cache\n");
        return 77;
    }
    return check::run();
}
