// Untrusted text must not become special tokens, in real vocabularies, and trusted text must become
// exactly what llama.cpp makes of it. Reads the vocabularies in llama.cpp's source.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
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
    std::vector<Token> reference(const std::string& text, bool parse_special = true) const {
        std::vector<Token> all(text.size() + 16);
        const int count =
            llama_tokenize(model->vocabulary().handle(), text.data(), static_cast<int>(text.size()),
                           all.data(), static_cast<int>(all.size()), false, parse_special);
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

// GPT-2's vocabulary, with another splitter of words.
std::shared_ptr<const Model> with_splitter(const std::string& name) {
    std::string file = read(folder() + "ggml-vocab-gpt-2.gguf");
    const std::string key = "tokenizer.ggml.pre";
    const std::size_t at = file.find(key) + key.size() + sizeof(std::uint32_t);  // behind its type
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof(length));
    const std::uint64_t size = name.size();
    const std::string told(reinterpret_cast<const char*>(&size), sizeof(size));
    file.replace(at, sizeof(length) + length, told + name);
    ModelOptions options;
    options.path = (std::filesystem::temp_directory_path() / "fermata-splitter.gguf").string();
    options.vocabulary_only = true;
    std::ofstream(options.path, std::ios::binary) << file;
    auto outcome = Model::load(options);
    std::filesystem::remove(options.path);
    if (!outcome.ok()) check::fail(name.c_str(), 0, outcome.error().message);
    return outcome.value();
}

long peak_kilobytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
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

// Splitters that are a std::regex call themselves for each letter of a word.
TEST(long_words_are_survived) {
    const std::size_t length = 40'000;
    std::string words;
    while (words.size() < length)
        words += " word";
    for (const char* splitter : {"gpt-4o", "tekken", "deepseek-v3", "exaone-moe"}) {
        const auto model = with_splitter(splitter);
        for (const std::string& text :
             {std::string(length, 'a'), std::string(length, ' '), words}) {
            auto tokens = model->tokenizer().tokenize(text, "", false);
            CHECK(tokens.ok());
            if (model->tokenizer().detokenize(tokens.value(), false) != text)
                check::fail(splitter, 0, "other text than " + text.substr(0, 5));
        }
    }
}

// What llama.cpp splits anyway is where a long line is cut.
TEST(long_lines_are_as_llama_makes_them) {
    std::string prose, json, table;
    for (int i = 0; prose.size() < 20'000; ++i) {
        const std::string number = std::to_string(i * 7919);
        prose +=
            "The " + number + " foxes don't run, they (mostly) walk" + (i % 3 == 0 ? ". " : " ");
        json += "{\"id\":" + number + ",\"name\":\"fox\",\"isQuick\":true,\"tail\":[1,2.5,null]},";
        table += "fox_" + number + "=walk;";
    }
    for (const Subject& subject : subjects()) {
        subject.expect_as_llama(prose, "prose in one line");
        subject.expect_as_llama(json, "JSON in one line");
        subject.expect_as_llama(table, "a table in one line");
    }
}

TEST(runs_of_blanks_take_little_memory) {
    for (const Subject& subject : subjects()) {
        if (subject.name != "gemma-4" && subject.name != "gpt-neox") continue;
        for (const char blank : {'\n', ' ', '\t'}) {
            const long before = peak_kilobytes();
            subject.tokens(std::string(200'000, blank));
            const long growth = peak_kilobytes() - before;
            if (growth > 60'000)
                check::fail(subject.name.c_str(), 0, std::to_string(growth) + " KB");
        }
    }
}

// Each is cut where they are few. The time to cut so many was that of a call for each.
TEST(many_guarded_spellings_are_data) {
    for (const Subject& subject : subjects()) {
        std::string text;
        const auto& special = subject.model->info().special_tokens;
        for (std::size_t i = 0; i < 2'000; ++i)
            text += special[i % std::min<std::size_t>(special.size(), 20)].text + "x";
        const std::string guarded = subject.untrusted(text);
        subject.expect_data(guarded, "one of many");
        std::string back = subject.tokenizer().detokenize(subject.tokens(guarded), true);
        if (back.size() == text.size() + 1 && back.front() == ' ') back.erase(0, 1);
        if (back != text) check::fail(subject.name.c_str(), 0, "many spellings lose bytes");
    }
}

int main() {
    if (folder().empty()) {
        std::printf("skipped: llama.cpp's source is not in .cache\n");
        return 77;
    }
    return check::run();
}
