#include "guidance/unique_vocabulary.h"

#include <algorithm>

namespace fermata {

namespace {

// Behind a comma, an item may end.
bool may_end_several(std::string_view text) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return false;
    const std::string_view rest = text.substr(comma + 1);
    if (rest.find_first_of(",]}") != std::string_view::npos) return true;
    if (std::ranges::count(rest, '"') > 1) return true;
    return rest.find("true") != std::string_view::npos ||
           rest.find("false") != std::string_view::npos ||
           rest.find("null") != std::string_view::npos;
}

// Where an array begins whose first item, or a repeated one, is to be looked at.
std::size_t find_opening(std::string_view text) {
    std::size_t at = text.find('[');
    for (; at != std::string_view::npos; at = text.find('[', at + 1)) {
        const std::size_t first = text.find_first_not_of(" \n", at + 1);
        if (first == std::string_view::npos) continue;
        if (text[first] == '"' || text[first] == '7') return at;
        if (may_end_several(text.substr(first))) return at;
    }
    return at;
}

}  // namespace

UniqueVocabulary::UniqueVocabulary(const VocabularyDescription& described) : described_(described) {
    for (std::size_t id = 0; id < described.tokens.size(); ++id) {
        const auto token = static_cast<Token>(id);
        const std::string_view text = bytes(token);
        if (text.empty()) continue;
        sorted_.push_back(token);
        if (text.size() == 1) single_[static_cast<unsigned char>(text[0])] = token;
        if (may_end_several(text)) several.push_back(token);
        const std::size_t bracket = find_opening(text);
        if (bracket != std::string_view::npos) opening.push_back(token);
        const std::size_t quote = text.rfind('"');
        if (quote == std::string_view::npos) continue;
        quoted.push_back(token);
        if (text.substr(0, bracket).find('"') != std::string_view::npos &&
            bracket != std::string_view::npos)
            opening_behind_quote.push_back(token);
        if (may_end_several(text)) several_quoted.push_back(token);
        if (text.find_first_of("]}") != std::string_view::npos) closing.push_back(token);
        if (text.find('\\') < quote) escaping.push_back(token);
    }
    std::ranges::sort(sorted_, [this](Token a, Token b) { return bytes(a) < bytes(b); });
}

std::string_view UniqueVocabulary::bytes(Token token) const {
    const std::string& text = described_.tokens[static_cast<std::size_t>(token)];
    return text.empty() || text[0] == kUnmatchable ? std::string_view() : text;
}

std::span<const Token> UniqueVocabulary::beginning_with(std::string_view begin) const {
    const auto first =
        std::ranges::lower_bound(sorted_, begin, {}, [this](Token token) { return bytes(token); });
    const auto last = std::find_if_not(
        first, sorted_.end(), [&](Token token) { return bytes(token).starts_with(begin); });
    return {first, last};
}

std::vector<Token> UniqueVocabulary::spell(std::string_view text) const {
    std::vector<Token> tokens;
    for (const char letter : text) {
        const auto single = single_[static_cast<unsigned char>(letter)];
        if (!single) return described_.tokenize ? described_.tokenize(text) : std::vector<Token>();
        tokens.push_back(*single);
    }
    return tokens;
}

}  // namespace fermata
