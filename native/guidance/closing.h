// Looks for a short way to the end of a guided text.
//
// The grammar is seen through its masks only, so the way is found by trying: where little is
// allowed, what closes (a bracket, a quote) before what goes on; where nearly anything is, the
// texts that may end such a stretch, each looked at for whether it did. The result is short, not
// provably shortest. A search can be cut into pieces of a few looks at the grammar each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/matcher.h"
#include "core/token_mask.h"
#include "core/vocabulary_description.h"

namespace fermata {

// What a vocabulary has for closing texts. Immutable.
struct ClosingTokens {
    // `described` outlives this object.
    explicit ClosingTokens(const VocabularyDescription& described);

    const VocabularyDescription& vocabulary;
    std::vector<Token> closers;                         // in order of preference
    std::vector<Token> fillers;                         // words, the longest first
    std::vector<Token> letters;                         // single ones
    std::optional<Token> letter = {};                   // one that any text may have
    std::optional<std::array<Token, 2>> brackets = {};  // closing ones
    std::unordered_map<std::string, Token> merges;      // of punctuation, a few bytes
};

// One search, as Matcher::closing. It consumes as it goes and takes everything back at its end.
class ClosingSearch {
   public:
    // All outlive it. `delimiters`: texts of the grammar that may end a stretch of free text.
    ClosingSearch(const ClosingTokens& tokens, Matcher& matcher, std::size_t most,
                  const std::vector<std::string>& delimiters);

    // Not after it was done.
    Closing advance(std::size_t& work);

   private:
    // Where the grammar is, as far as its masks tell.
    struct Place {
        std::size_t visits = 0;
        std::size_t next = 0;            // letter
        std::vector<Token> useful = {};  // letters that led elsewhere
        std::size_t again = 0;           // of them, the next
    };

    bool ended();
    bool look();
    bool is_text() const;
    bool choose(Place& place);
    std::optional<Token> letter_of(Place& place);
    bool try_delimiter();
    bool take(std::span<const Token> tokens);
    bool take_back(std::size_t count);
    bool take_longest();
    bool repeats(Token token) const;
    std::vector<Token> merge() const;

    const ClosingTokens& tokens_;
    Matcher& matcher_;
    const std::size_t most_;
    const std::vector<std::string>& delimiters_;
    std::size_t looks_ = 0;
    std::optional<std::size_t> delimiter_ = {};             // to be tried next, of those for texts
    std::unordered_map<std::uint64_t, Place> places_ = {};  // by the hash of the mask
    std::uint64_t mask_hash_ = 0;                           // of the last place
    std::optional<std::pair<std::uint64_t, Token>> tried_ = {};  // there, a letter
    std::vector<Token> path_ = {};
    std::vector<std::uint32_t> mask_ = {};
};

// The literals of a Lark grammar that are short enough to end a stretch of free text.
std::vector<std::string> literals_of(const std::string& lark);

}  // namespace fermata
