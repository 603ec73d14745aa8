#include "llama/tokenizer.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>

#include "llama.h"
#include "llama/long_words.h"

namespace fermata {

namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<std::int32_t>::max();

Error too_long() {
    return {ErrorCode::kInvalidArgument, "The text is too long to tokenize (2 GB at most)."};
}

Error untokenizable(const std::exception& failure) {
    return {ErrorCode::kInvalidArgument,
            std::string("The text cannot be tokenized: ") + failure.what()};
}

// Of so many guarded spellings in one text, each is cut. Of more, whose parts would take a call
// each, one of so many; the others are found by append_unreserved.
constexpr std::ptrdiff_t kFewSpellings = 256;

bool is_blank(char letter) {
    return letter == ' ' || (letter >= '\t' && letter <= '\r');
}

// Bytes of the UTF-8 character at the start of `text`, which is not empty.
std::size_t first_character_length(std::string_view text) {
    std::size_t length = 1;
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
        ++length;
    return length;
}

}  // namespace

struct Tokenizer::Plain {
    std::string text;
    std::vector<std::size_t> guards;  // ascending offsets into text, each between two bytes

    bool has_guard(std::size_t after, std::size_t until) const {
        const auto next = std::upper_bound(guards.begin(), guards.end(), after);
        return next != guards.end() && *next <= until;
    }
    // Inside the spelling or right after its first character.
    bool is_guarded(const Occurrence& occurrence) const {
        const auto spelling =
            std::string_view(text).substr(occurrence.begin, occurrence.end - occurrence.begin);
        const std::size_t first_end = occurrence.begin + first_character_length(spelling);
        return has_guard(occurrence.begin, std::max(occurrence.end - 1, first_end));
    }
};

struct Tokenizer::Segment {
    std::size_t begin = 0;
    std::size_t end = 0;
    Token special = -1;  // -1: text
};

Tokenizer::Tokenizer(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    const auto& special = vocabulary.special_tokens();
    for (std::size_t i = 0; i < special.size(); ++i)
        spellings_.add(special[i].text, i);
    separator_ = find_separator();
    if (!separator_.empty()) separator_tokens_ = tokenize_plain(separator_).size();
}

Result<std::vector<Token>> Tokenizer::tokenize(std::string_view text, std::string_view guard,
                                               bool add_bos) const {
    if (text.size() > kMostBytes) return too_long();
    try {
        const Plain plain = remove_guards(text, guard);
        const FoundSpellings found = spellings_.find_all(plain.text);
        std::vector<Token> tokens;
        for (const Segment& part : segment(plain, found)) {
            if (part.special >= 0) {
                tokens.push_back(part.special);
            } else {
                append_text(plain, part, found.shortest, tokens);
            }
        }
        const Token bos = vocabulary_.bos_token();
        if (add_bos && bos >= 0 && (tokens.empty() || tokens.front() != bos))
            tokens.insert(tokens.begin(), bos);
        return tokens;
    } catch (const std::exception& failure) {
        return untokenizable(failure);
    }
}

Result<std::vector<Token>> Tokenizer::tokenize_text(std::string_view text) const {
    if (text.size() > kMostBytes) return too_long();
    try {
        return tokenize_plain(text);
    } catch (const std::exception& failure) {
        return untokenizable(failure);
    }
}

std::string Tokenizer::detokenize(std::span<const Token> tokens, bool special) const {
    std::string text;
    for (const Token token : tokens) {
        if (!vocabulary_.contains(token)) continue;
        if (special) {
            text += vocabulary_.spelled_piece(token);
        } else {
            text += vocabulary_.piece(token);
        }
    }
    return text;
}

Tokenizer::Plain Tokenizer::remove_guards(std::string_view text, std::string_view guard) {
    Plain plain;
    if (guard.empty()) {
        plain.text = text;
        return plain;
    }
    plain.text.reserve(text.size());
    std::size_t from = 0;
    for (std::size_t at; (at = text.find(guard, from)) != std::string_view::npos;
         from = at + guard.size()) {
        plain.text += text.substr(from, at - from);
        plain.guards.push_back(plain.text.size());
    }
    plain.text += text.substr(from);
    return plain;
}

// As llama.cpp does it: token by token in the order of special_tokens(), each from left to right,
// in the text that the tokens before it have left.
std::vector<Tokenizer::Segment> Tokenizer::segment(const Plain& plain,
                                                   const FoundSpellings& found) const {
    std::map<std::size_t, std::size_t> texts;  // begin to end of what is still text
    if (!plain.text.empty()) texts.emplace(0, plain.text.size());
    std::vector<Segment> segments;
    for (const Occurrences& each : found.all) {
        const SpecialToken& token = vocabulary_.special_tokens()[each.spelling];
        const std::size_t length = token.text.size();
        const std::size_t behind = std::size_t{each.begin} + each.count;
        for (std::size_t at = each.begin; at < behind;) {
            const auto next = texts.upper_bound(at);
            const auto around = next == texts.begin() ? texts.end() : std::prev(next);
            if (around == texts.end() || at + length > around->second) {
                if (next == texts.end()) break;
                at = next->first;
                continue;
            }
            if (plain.is_guarded({at, at + length})) {
                ++at;
                continue;
            }
            const auto [begin, end] = *around;
            std::size_t left_end = at;
            std::size_t right_begin = at + length;
            segments.push_back({at, right_begin, token.id});
            at = right_begin;
            while (token.strip_left && left_end > begin && is_blank(plain.text[left_end - 1]))
                --left_end;
            while (token.strip_right && right_begin < end && is_blank(plain.text[right_begin]))
                ++right_begin;
            texts.erase(around);
            if (left_end > begin) texts.emplace(begin, left_end);
            if (right_begin < end) texts.emplace(right_begin, end);
        }
    }
    for (const auto& [begin, end] : texts)
        segments.push_back({begin, end, -1});
    std::sort(segments.begin(), segments.end(),
              [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
    return segments;
}

void Tokenizer::append_text(const Plain& plain, const Segment& segment,
                            const std::vector<Occurrence>& spelled,
                            std::vector<Token>& tokens) const {
    const auto text = std::string_view(plain.text);
    if (!plain.has_guard(segment.begin, segment.end)) {
        const auto all = tokenize_plain(text.substr(segment.begin, segment.end - segment.begin));
        tokens.insert(tokens.end(), all.begin(), all.end());
        return;
    }
    // Every spelling that lies wholly in this text is a guarded one.
    const auto first = std::ranges::lower_bound(spelled, segment.begin, {}, &Occurrence::begin);
    const auto last = std::ranges::lower_bound(spelled, segment.end, {}, &Occurrence::begin);
    const auto stride = last - first > kFewSpellings ? kFewSpellings : 1;
    std::size_t from = segment.begin;
    auto cut_at = [&](std::size_t cut) {
        if (cut == from) return;
        append_part(text.substr(from, cut - from), from > segment.begin, tokens);
        from = cut;
    };
    for (auto next = first; next < last; next += std::min(stride, last - next)) {
        if (next->end <= segment.end)
            cut_at(next->begin + first_character_length(text.substr(next->begin)));
    }
    cut_at(segment.end);
}

void Tokenizer::append_part(std::string_view part, bool continues,
                            std::vector<Token>& tokens) const {
    append_unreserved(continues ? tokenize_behind(part) : tokenize_plain(part), tokens);
}

std::vector<Token> Tokenizer::tokenize_behind(std::string_view text) const {
    if (separator_.empty()) return tokenize_plain(text);
    auto separated = tokenize_plain(separator_ + std::string(text));
    separated.erase(separated.begin(),
                    separated.begin() + static_cast<std::ptrdiff_t>(separator_tokens_));
    return separated;
}

std::vector<Token> Tokenizer::tokenize_continuation(std::string_view text) const {
    try {
        std::vector<Token> tokens = tokenize_behind(text);
        if (detokenize(tokens, false) == text) return tokens;
        tokens.clear();
        for (const char letter : text) {
            const Token byte = vocabulary_.byte_token(static_cast<unsigned char>(letter));
            if (byte < 0) return {};
            tokens.push_back(byte);
        }
        return tokens;
    } catch (const std::exception&) {
        return {};
    }
}

void Tokenizer::append_unreserved(const std::vector<Token>& part,
                                  std::vector<Token>& tokens) const {
    for (const Token token : part) {
        if (!vocabulary_.is_reserved(token)) {
            tokens.push_back(token);
            continue;
        }
        for (const char letter : vocabulary_.spelled_piece(token)) {
            const Token byte = vocabulary_.byte_token(static_cast<unsigned char>(letter));
            if (byte >= 0) tokens.push_back(byte);
        }
    }
}

std::vector<Token> Tokenizer::tokenize_plain(std::string_view text) const {
    if (!vocabulary_.splits_words()) return tokenize_piece(text);
    std::vector<Token> tokens;
    for (const std::string_view piece : cut_long_words(text)) {
        const std::vector<Token> more = tokenize_piece(piece);
        tokens.insert(tokens.end(), more.begin(), more.end());
    }
    return tokens;
}

std::vector<Token> Tokenizer::tokenize_piece(std::string_view text) const {
    std::vector<Token> tokens(text.size() / 2 + 16);
    auto run = [&] {
        return llama_tokenize(vocabulary_.handle(), text.data(),
                              static_cast<std::int32_t>(text.size()), tokens.data(),
                              static_cast<std::int32_t>(tokens.size()), false, false);
    };
    std::int32_t count = run();
    if (count == std::numeric_limits<std::int32_t>::min())
        throw std::runtime_error("too many tokens");
    if (count < 0) {
        tokens.resize(static_cast<std::size_t>(-count));
        count = run();
    }
    tokens.resize(static_cast<std::size_t>(count));
    return tokens;
}

std::string Tokenizer::find_separator() const {
    if (!vocabulary_.is_sentencepiece()) return {};
    // A control character that no token of several characters contains becomes a token of its own.
    for (char candidate = '\x01'; candidate < '\x09'; ++candidate) {
        const std::string separator(1, candidate);
        auto expected = tokenize_plain(separator);
        const auto word = tokenize_plain(separator + "a");
        if (word.size() == expected.size() + 1 &&
            std::equal(expected.begin(), expected.end(), word.begin()) &&
            vocabulary_.piece(word.back()) == "a") {
            return separator;
        }
    }
    return {};
}

}  // namespace fermata
