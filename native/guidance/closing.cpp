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
// The same token so many times in a row leads nowhere.
constexpr std::size_t kMostRepeats = 4;
constexpr std::size_t kMostFillers = 4000;
// Of one walk, which everybody's next token waits for: some 20 to 300 us each. What takes more to
// end is cut.
constexpr std::size_t kMostSteps = 1000;

constexpr std::array<std::string_view, 24> kClosers = {
    "}",     "]",    ")", ">", "\"\"", "\"", ",", ":", "[]", "{}", "null", "0",
    "false", "true", "1", "2", "3",    "4",  "5", "6", "7",  "8",  "9",    "["};

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

std::size_t count_allowed(TokenMask mask) {
    std::size_t count = 0;
    for (const std::uint32_t word : mask)
        count += static_cast<std::size_t>(std::popcount(word));
    return count;
}

}  // namespace

// One walk ahead. Consumes as it goes and takes everything back at its end.
class ClosingTokens::Search {
   public:
    Search(const ClosingTokens& tokens, Matcher& matcher, std::size_t most,
           const std::vector<std::string>& delimiters)
        : tokens_(tokens), matcher_(matcher), most_(most), delimiters_(delimiters) {}

    std::optional<std::vector<Token>> run() {
        bool found = true;
        for (std::size_t steps = 0; found && !matcher_.accepting() && !matcher_.stopped(); ++steps)
            found = steps < kMostSteps && path_.size() < 2 * most_ + 8 && step();
        if (!matcher_.rollback(path_.size()) || !found) return std::nullopt;
        std::vector<Token> merged = merge();
        if (matcher_.accepted(merged) == merged.size()) path_ = std::move(merged);
        if (path_.size() > most_) return std::nullopt;
        return std::move(path_);
    }

   private:
    bool take(std::span<const Token> tokens) {
        for (const Token token : tokens) {
            if (!matcher_.consume(token)) return false;
            path_.push_back(token);
        }
        return !tokens.empty();
    }

    bool take_back(std::size_t count) {
        path_.resize(path_.size() - count);
        return matcher_.rollback(count);
    }

    bool step() {
        if (take(matcher_.forced())) return true;
        if (!matcher_.compute_mask(mask_)) return false;
        if (count_allowed(mask_) > kFreeText) {
            if (end_free_text()) return true;
            if (!matcher_.error().empty() || !matcher_.compute_mask(mask_)) return false;
        }
        for (const auto* choices : {&tokens_.closers_, &tokens_.fillers_}) {
            for (const Token token : *choices) {
                if (allows(mask_, token) && !repeats(token)) return take(std::span(&token, 1));
            }
        }
        return take_longest();
    }

    bool repeats(Token token) const {
        if (path_.size() < kMostRepeats) return false;
        return std::all_of(path_.end() - kMostRepeats, path_.end(),
                           [token](Token each) { return each == token; });
    }

    // Tries each delimiter for whether free text ends with it.
    bool end_free_text() {
        for (const std::string& delimiter : delimiters_) {
            const auto tokens = tokens_.vocabulary_.tokenize(delimiter);
            if (tokens.empty() || matcher_.accepted(tokens) != tokens.size()) continue;
            if (!take(tokens)) return false;
            if (matcher_.accepting() || matcher_.stopped()) return true;
            if (!matcher_.compute_mask(mask_)) return false;
            if (count_allowed(mask_) <= kFreeText) return true;
            if (!take_back(tokens.size())) return false;
        }
        return false;
    }

    bool take_longest() {
        Token best = -1;
        std::size_t longest = 0;
        const auto& pieces = tokens_.vocabulary_.tokens;
        for_each_allowed(mask_, pieces.size(), [&](std::size_t id) {
            const bool blank = pieces[id].find_first_not_of(" \t\r\n") == std::string::npos;
            const std::size_t length =
                blank || pieces[id][0] == kUnmatchable ? 1 : pieces[id].size() + 1;
            if (length <= longest) return;
            longest = length;
            best = static_cast<Token>(id);
        });
        return best >= 0 && take(std::span(&best, 1));
    }

    // Runs of punctuation as the few tokens that a model would write.
    std::vector<Token> merge() const {
        std::vector<Token> merged;
        for (std::size_t from = 0; from < path_.size();) {
            std::string text;
            std::size_t best_count = 1;
            Token best = path_[from];
            for (std::size_t count = 1; from + count <= path_.size(); ++count) {
                text += piece(path_[from + count - 1]);
                if (text.size() > kLongestMerge) break;
                const auto found = tokens_.short_.find(text);
                if (found == tokens_.short_.end()) continue;
                best = found->second;
                best_count = count;
            }
            merged.push_back(best);
            from += best_count;
        }
        return merged;
    }

    const std::string& piece(Token token) const {
        return tokens_.vocabulary_.tokens[static_cast<std::size_t>(token)];
    }

    const ClosingTokens& tokens_;
    Matcher& matcher_;
    const std::size_t most_;
    const std::vector<std::string>& delimiters_;
    std::vector<Token> path_;
    std::vector<std::uint32_t> mask_;
};

ClosingTokens::ClosingTokens(const VocabularyDescription& vocabulary) : vocabulary_(vocabulary) {
    std::unordered_map<std::string_view, Token> by_text;
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
        const std::string& text = vocabulary.tokens[id];
        const auto token = static_cast<Token>(id);
        by_text.emplace(text, token);
        if (text.size() <= kLongestMerge && std::ranges::all_of(text, is_punctuation))
            short_.emplace(text, token);
        if (is_word(text)) fillers_.push_back(token);
    }
    for (const std::string_view text : kClosers) {
        if (const auto found = by_text.find(text); found != by_text.end())
            closers_.push_back(found->second);
    }
    std::ranges::stable_sort(fillers_, [&](Token a, Token b) {
        return vocabulary.tokens[static_cast<std::size_t>(a)].size() >
               vocabulary.tokens[static_cast<std::size_t>(b)].size();
    });
    fillers_.resize(std::min(fillers_.size(), kMostFillers));
}

std::optional<std::vector<Token>> ClosingTokens::find(
    Matcher& matcher, std::size_t most, const std::vector<std::string>& delimiters) const {
    return Search(*this, matcher, most, delimiters).run();
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
