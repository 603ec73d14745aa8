#include "llama/long_words.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "unicode.h"

namespace fermata {

namespace {

enum class Kind : std::uint8_t { kNewline, kBlank, kLetter, kNumber, kOther };

struct Character {
    Kind kind = Kind::kOther;
    char first = '\0';
    std::size_t bytes = 1;
};

Character character_at(std::string_view text, std::size_t at) {
    Character next{.first = text[at]};
    while (at + next.bytes < text.size() &&
           (static_cast<unsigned char>(text[at + next.bytes]) & 0xC0) == 0x80)
        ++next.bytes;
    std::uint32_t code = static_cast<unsigned char>(next.first);
    if (next.bytes > 1 && next.bytes <= 4) {
        code &= 0x7Fu >> next.bytes;
        for (std::size_t i = 1; i < next.bytes; ++i)
            code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
    }
    const unicode_cpt_flags flags = unicode_cpt_flags_from_cpt(code);
    next.kind = next.first == '\n'                        ? Kind::kNewline
                : flags.is_whitespace                     ? Kind::kBlank
                : flags.is_letter || flags.is_accent_mark ? Kind::kLetter
                : flags.is_number                         ? Kind::kNumber
                                                          : Kind::kOther;
    return next;
}

// Whether no match goes from one to the other, whatever the splitter.
bool ends_match(const Character& before, const Character& next) {
    switch (before.kind) {
        case Kind::kNewline:
            return next.kind != Kind::kNewline && next.kind != Kind::kBlank;
        case Kind::kLetter:
            return next.kind == Kind::kNumber || (next.kind == Kind::kOther && next.first != '\'');
        case Kind::kNumber:
            return next.kind == Kind::kLetter || next.kind == Kind::kOther;
        case Kind::kOther:
            return next.kind == Kind::kNumber;
        case Kind::kBlank:
            return false;
    }
    return false;
}

}  // namespace

std::vector<std::string_view> cut_long_words(std::string_view text) {
    std::vector<std::string_view> pieces;
    std::size_t from = 0;   // where the piece begins
    std::size_t space = 0;  // in this match, before a word; not behind `from`: none
    std::size_t count = 0;  // characters of the match
    std::size_t since = 0;  // of these, behind `space`
    Character before{.kind = Kind::kNewline};
    for (std::size_t at = 0; at < text.size() && text.size() > kLongestWord;) {
        const Character next = character_at(text, at);
        const std::size_t behind = at + next.bytes;
        if (ends_match(before, next)) {
            count = 0;
            space = from;
        } else if (next.first == ' ' && before.kind == Kind::kLetter && behind < text.size() &&
                   character_at(text, behind).kind == Kind::kLetter) {
            space = at;
            since = 0;
        }
        if (count == kLongestWord) {
            const bool is_word = space <= from;
            const std::size_t cut = is_word ? at : space;
            pieces.push_back(text.substr(from, cut - from));
            count = is_word ? 0 : since;
            from = space = cut;
        }
        ++count;
        ++since;
        before = next;
        at = behind;
    }
    pieces.push_back(text.substr(from));
    return pieces;
}

}  // namespace fermata
