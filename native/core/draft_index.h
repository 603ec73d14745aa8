// Proposes what a sequence may say next: what followed, earlier in it, the tokens that it ends with
// now. Copies from results, edits of what was read and repeated calls are found so. An edit puts
// one token in place of another and goes on copying, so a source is followed past some such tokens.
// Near the places that the text was copied from, one token tells where it goes on.
// Rows of a result written in another form, a call for each, have the text of the row before with
// the values of the next one in the result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/types.h"

namespace fermata {

// What a token is in a row that is written like the one before it.
enum class RowToken : std::uint8_t { kText, kFirstOfValue, kValue, kBehindValue };

struct Draft {
    std::vector<Token> tokens = {};
    std::int32_t match = 0;    // tokens that the text has in common before it; 0: no match
    std::int32_t misses = 0;   // without a match: times that the text differed since it last agreed
    std::int32_t source = -1;  // index of the earlier token that the last one stands for; -1: none
    std::vector<RowToken> row = {};  // of a next row: what each token is; else empty
    bool by_model = false;           // see DraftModel; match, misses and source say nothing then
    // Tokens from there on are what a grammar forces.
    std::size_t forced_from = std::numeric_limits<std::size_t>::max();
};

// About 24 bytes for each token. A token is added in constant time; a proposal looks at
// kMostCandidates places at most. For a next row, up to 1,024 tokens behind each value are
// searched.
class DraftIndex {
   public:
    static constexpr std::int32_t kLeastMatch = 3;
    static constexpr std::int32_t kLongestMatch = 64;
    static constexpr std::int32_t kMostCandidates = 32;

    std::int32_t size() const { return static_cast<std::int32_t>(history_.size()); }
    void append(std::span<const Token> tokens);
    // Forgets the tokens from index `size` on.
    void shorten(std::int32_t size);
    // What followed the longest match, the latest of equals: at most `most` tokens. A match that
    // reaches the end of the text goes on with the proposal itself.
    Draft propose(std::int32_t most) const;
    // What comes next in the source of the draft that was followed last, as if the text had put one
    // token in place of another. Nothing after kMostMisses of them.
    Draft go_on(std::int32_t most) const;
    // What comes near each place that the text was copied from, behind the token that the text ends
    // with now.
    std::vector<Draft> nearby(std::int32_t most) const;
    // What `propose` says, with the values of the next row in place of those that it repeats;
    // nothing if there are none.
    Draft next_row(const Draft& proposed, std::int32_t most) const;
    // The same by where each token of the row before was copied from: for values of a token or two,
    // and between tokens that stand before no other value.
    Draft next_row_by_origin(std::int32_t most) const;
    // All of these.
    std::vector<Draft> proposals(std::int32_t most) const;
    // `draft` is what the next tokens will be compared with.
    void follow(const Draft& draft);

   private:
    static constexpr std::int32_t kMostMisses = 4;
    static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

    // Tokens that stand at `start` and, copied from there, at `copy`.
    struct Value {
        std::int32_t start = 0;
        std::int32_t copy = 0;
        std::int32_t length = 0;
    };
    std::optional<Value> value_at(std::int32_t copy) const;
    std::optional<Value> value_before(const Draft& proposed) const;
    std::optional<Value> value_of(std::int32_t start, std::int32_t copy) const;
    std::int32_t earlier_run(std::int32_t last) const;
    std::int32_t after_run(std::int32_t last) const;

    // Where the text was copied from.
    struct Place {
        std::int32_t last = -1;  // index of the token that stands for the last copied one; -1: none
        std::int32_t since = 0;  // tokens that the text has said since
    };
    using Places = std::array<Place, 3>;  // a source or two, and the row before
    struct NewRow;
    void advance(std::int32_t token);
    Place advanced(Place place, std::int32_t token) const;
    void remember(std::int32_t source);
    std::int32_t find_near(std::int32_t around, std::int32_t token, std::int32_t count) const;
    bool is_same(std::int32_t last, std::int32_t other, std::int32_t count) const;

    Draft next_row_behind(std::size_t place, std::int32_t most) const;
    bool take_next_value(NewRow& made) const;
    bool take_from_source(NewRow& made, Place& source, std::int32_t first) const;
    std::int32_t copied_length(std::int32_t token) const;
    std::int32_t counterpart(std::int32_t start, std::int32_t behind) const;
    bool take_until(Token end, std::int32_t first, Draft& draft) const;

    Draft from(std::int32_t source, std::int32_t most) const;
    std::size_t bucket(std::int32_t last) const;
    void enter(std::int32_t last);
    std::int32_t common(std::int32_t last, std::int32_t end, std::int32_t most) const;

    std::vector<Token> history_;
    std::vector<std::int32_t> origin_;  // where each token was copied from; -1: nowhere
    std::int32_t followed_ = -1;        // index of the token that the last one stands for; -1: none
    std::int32_t misses_ = 0;
    Places places_ = {};
    // Runs of kLeastMatch tokens by where they end, of one bucket the later one first. A run is
    // entered with the token behind it.
    std::vector<std::int32_t> latest_;   // by bucket; -1: none
    std::vector<std::int32_t> earlier_;  // by where the run ends
};

}  // namespace fermata
