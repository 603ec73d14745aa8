#include "guidance/closing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

namespace fermata {

namespace {

// More allowed tokens than this: free text, such as the inside of a string.
constexpr std::size_t kFreeText = 2000;
constexpr std::size_t kLongestLiteral = 40;
constexpr std::size_t kMostLiterals = 64;
constexpr std::size_t kLongestMerge = 4;
// The same token, or digits only, so many times in a row lead nowhere.
constexpr std::size_t kMostRepeats = 4;
// So often at one place, what is tried there first leads nowhere.
constexpr std::size_t kMostVisits = 4;
// Delimiters that are tried at each visit; the others at the first, and the more seldom the more
// there were.
constexpr std::size_t kFirstDelimiters = 2;
constexpr std::size_t kMostFillers = 4000;
// Of one search. What takes more to end is cut.
constexpr std::size_t kMostLooks = 3000;

constexpr std::array<std::string_view, 24> kClosers = {
    "}",     "]",    ")", ">", "\"\"", "\"", ",", ":", "[]", "{}", "null", "0",
    "false", "true", "1", "2", "3",    "4",  "5", "6", "7",  "8",  "9",    "["};
// What patterns ask for between words comes first.
constexpr std::string_view kLetters =
    ".@'-:/_,;=+# \"&%?|()[]{}<>!$*\\^`~\n"
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool is_punctuation(char letter) {
    return (letter >= '!' && letter <= '/') || (letter >= ':' && letter <= '@') ||
           (letter >= '[' && letter <= '`') || (letter >= '{' && letter <= '~') || letter == '\n' ||
           letter == ' ';
}

bool is_word(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    });
}

bool is_number(std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

std::uint64_t hash_of(TokenMask mask) {
    std::uint64_t hash = 1469598103934665603U;
    for (const std::uint32_t word : mask)
        hash = (hash ^ word) * 1099511628211U;
    return hash;
}

std::size_t count_allowed(TokenMask mask) {
    std::size_t count = 0;
    for (const std::uint32_t word : mask)
        count += static_cast<std::size_t>(std::popcount(word));
    return count;
}

}  // namespace

ClosingTokens::ClosingTokens(const VocabularyDescription& described) : vocabulary(described) {
    std::unordered_map<std::string_view, Token> by_text;
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
        const std::string& text = vocabulary.tokens[id];
        const auto token = static_cast<Token>(id);
        by_text.emplace(text, token);
        if (text.size() <= kLongestMerge && std::ranges::all_of(text, is_punctuation))
            merges.emplace(text, token);
        if (is_word(text)) fillers.push_back(token);
    }
    for (const std::string_view text : kClosers) {
        if (const auto found = by_text.find(text); found != by_text.end())
            closers.push_back(found->second);
    }
    for (std::size_t at = 0; at < kLetters.size(); ++at) {
        if (const auto found = by_text.find(kLetters.substr(at, 1)); found != by_text.end())
            letters.push_back(found->second);
    }
    if (const auto found = by_text.find("a"); found != by_text.end()) letter = found->second;
    const auto bracket = by_text.find("]");
    const auto brace = by_text.find("}");
    if (bracket != by_text.end() && brace != by_text.end())
        brackets = {{bracket->second, brace->second}};
    std::ranges::stable_sort(fillers, [&](Token a, Token b) {
        return vocabulary.tokens[static_cast<std::size_t>(a)].size() >
               vocabulary.tokens[static_cast<std::size_t>(b)].size();
    });
    fillers.resize(std::min(fillers.size(), kMostFillers));
}

ClosingSearch::ClosingSearch(const ClosingTokens& tokens, Matcher& matcher, std::size_t most,
                             const std::vector<std::string>& delimiters)
    : tokens_(tokens), matcher_(matcher), most_(most), delimiters_(delimiters) {}

Closing ClosingSearch::advance(std::size_t& work) {
    bool found = true;
    while (found && !ended()) {
        if (work == 0) return {.done = false};
        --work;
        found = looks_++ < kMostLooks && path_.size() < 2 * most_ + 8 && look();
    }
    if (!matcher_.rollback(path_.size()) || !found) return {};
    std::vector<Token> merged = merge();
    if (matcher_.accepted(merged) == merged.size()) path_ = std::move(merged);
    if (path_.size() > most_) return {};
    return {.tokens = std::move(path_)};
}

bool ClosingSearch::ended() {
    return matcher_.accepting() || matcher_.stopped();
}

// One look at the grammar. false: there is no way on.
bool ClosingSearch::look() {
    if (delimiter_) return try_delimiter();
    if (take(matcher_.forced())) return true;
    if (!matcher_.compute_mask(mask_)) return false;
    mask_hash_ = hash_of(mask_);
    if (tried_ && tried_->first != mask_hash_)
        places_[tried_->first].useful.push_back(tried_->second);
    tried_.reset();
    Place& place = places_[mask_hash_];
    ++place.visits;
    if (!is_text()) return choose(place);
    delimiter_ = 0;
    return true;
}

// Of a document, no place but the inside of a text allows both brackets.
bool ClosingSearch::is_text() const {
    const auto allowed = [this](Token token) { return allows(mask_, token); };
    return count_allowed(mask_) > kFreeText ||
           (tokens_.brackets && std::ranges::all_of(*tokens_.brackets, allowed));
}

// Where the same masks come again and again, as in a text that must have an `@`, each letter has
// its turn, besides what makes the text longer. One that led elsewhere has another, as the two
// points of a token do.
bool ClosingSearch::choose(Place& place) {
    if (place.visits > kMostVisits && place.visits % 2 == 1) {
        if (const auto letter = letter_of(place)) {
            tried_ = {{mask_hash_, *letter}};
            return take(std::span(&*letter, 1));
        }
    }
    for (const auto* choices : {&tokens_.closers, &tokens_.fillers}) {
        // What closes something says nothing inside of a text.
        if (choices == &tokens_.closers && is_text()) continue;
        for (const Token token : *choices) {
            if (allows(mask_, token) && !repeats(token)) return take(std::span(&token, 1));
        }
    }
    return take_longest();
}

std::optional<Token> ClosingSearch::letter_of(Place& place) {
    if (place.visits % 4 == 3 && !place.useful.empty()) {
        const Token letter = place.useful[place.again++ % place.useful.size()];
        if (allows(mask_, letter)) return letter;
    }
    while (place.next < tokens_.letters.size()) {
        const Token letter = tokens_.letters[place.next++];
        if (allows(mask_, letter)) return letter;
    }
    return std::nullopt;
}

// Whether a text ends with the next delimiter.
bool ClosingSearch::try_delimiter() {
    Place& place = places_[mask_hash_];
    const bool all = std::has_single_bit(place.visits);
    if (*delimiter_ == delimiters_.size() || (!all && *delimiter_ == kFirstDelimiters)) {
        delimiter_.reset();
        // What was tried last may have left its own.
        return matcher_.compute_mask(mask_) && choose(place);
    }
    auto tokens = tokens_.vocabulary.tokenize(delimiters_[(*delimiter_)++]);
    const std::size_t length = tokens.size();
    // What a letter may follow has ended nothing: no mask is needed to see it.
    if (tokens_.letter) tokens.push_back(*tokens_.letter);
    if (length == 0 || matcher_.accepted(tokens) != length) return matcher_.error().empty();
    tokens.resize(length);
    if (!take(tokens)) return false;
    // Where the text goes on with it, the mask may take too long: then it ended nothing, either.
    const bool ends =
        ended() || (matcher_.compute_mask(mask_) && hash_of(mask_) != mask_hash_ && !is_text());
    if (!ends) return take_back(tokens.size());
    delimiter_.reset();
    return true;
}

bool ClosingSearch::take(std::span<const Token> tokens) {
    for (const Token token : tokens) {
        if (!matcher_.consume(token)) return false;
        path_.push_back(token);
    }
    return !tokens.empty();
}

bool ClosingSearch::take_back(std::size_t count) {
    path_.resize(path_.size() - count);
    return matcher_.rollback(count);
}

bool ClosingSearch::repeats(Token token) const {
    if (path_.size() < kMostRepeats) return false;
    const std::span last(path_.end() - kMostRepeats, path_.end());
    const auto is_digits = [this](Token each) {
        return is_number(tokens_.vocabulary.tokens[static_cast<std::size_t>(each)]);
    };
    return std::ranges::all_of(last, [token](Token each) { return each == token; }) ||
           (is_digits(token) && std::ranges::all_of(last, is_digits));
}

// A token that repeats is chosen only where nothing else is allowed: another digit than the last
// one before that one, since it may be what ends the number (0.0001 above 0).
bool ClosingSearch::take_longest() {
    Token best = -1;
    std::size_t longest = 0;
    const auto& pieces = tokens_.vocabulary.tokens;
    for_each_allowed(mask_, pieces.size(), [&](std::size_t id) {
        const auto token = static_cast<Token>(id);
        std::size_t length = pieces[id].size() + 3;
        if (pieces[id][0] == kUnmatchable)
            length = 1;
        else if (repeats(token))
            length = token == path_.back() ? 1 : 2;
        else if (pieces[id].find_first_not_of(" \t\r\n") == std::string::npos)
            length = 3;
        if (length <= longest) return;
        longest = length;
        best = token;
    });
    return best >= 0 && take(std::span(&best, 1));
}

// Runs of punctuation as the few tokens that a model would write.
std::vector<Token> ClosingSearch::merge() const {
    std::vector<Token> merged;
    for (std::size_t from = 0; from < path_.size();) {
        std::string text;
        std::size_t best_count = 1;
        Token best = path_[from];
        for (std::size_t count = 1; from + count <= path_.size(); ++count) {
            const auto token = static_cast<std::size_t>(path_[from + count - 1]);
            text += tokens_.vocabulary.tokens[token];
            if (text.size() > kLongestMerge) break;
            const auto found = tokens_.merges.find(text);
            if (found == tokens_.merges.end()) continue;
            best = found->second;
            best_count = count;
        }
        merged.push_back(best);
        from += best_count;
    }
    return merged;
}

// Quotes in comments and regular expressions only add texts that end nothing.
std::vector<std::string> literals_of(const std::string& lark) {
    std::vector<std::string> literals = {"\""};
    std::string literal;
    bool inside = false;
    for (std::size_t i = 0; i < lark.size() && literals.size() < kMostLiterals; ++i) {
        const char letter = lark[i];
        if (letter == '"') {
            if (inside && !literal.empty() && literal.size() <= kLongestLiteral &&
                std::ranges::find(literals, literal) == literals.end())
                literals.push_back(literal);
            inside = !inside;
            literal.clear();
        } else if (letter == '\n') {
            inside = false;
        } else if (letter == '\\' && inside && i + 1 < lark.size()) {
            const char escaped = lark[++i];
            literal += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
        } else if (inside) {
            literal += letter;
        }
    }
    return literals;
}

}  // namespace fermata
