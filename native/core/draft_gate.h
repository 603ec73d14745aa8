// How many drafted rows a step is worth. Learned from what steps took and from how often proposals
// were right, so that a draft is decoded only where it makes more tokens of the same time.
// Proposals are judged whether they were decoded or not: where drafts do not pay, that costs
// nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/backend.h"
#include "core/draft_index.h"
#include "core/micro_batches.h"

namespace fermata {

// How often the next token of a proposal was right: of those that a grammar forces, of those by a
// draft model, of those of a next row by what they are in it, of others by the length of their
// match or, without one, by how often the text had just differed. Of one sequence, or of all.
class DraftRecord {
   public:
    // `right` tokens of a proposal came true in order; `wrong`: the one behind them did not.
    void count(const Draft& draft, std::int32_t right, bool wrong);
    // The chance of a proposal's token, once those before it were right; where little was seen,
    // `usual` decides.
    double chance(const Draft& draft, std::size_t token, double usual) const;

   private:
    struct Counts {
        double right = 0.0;
        double tried = 0.0;
    };
    static constexpr std::size_t kLengths = 7;
    static constexpr std::size_t kMisses = 4;
    static constexpr std::size_t kOfRow = kLengths + kMisses;
    static constexpr std::size_t kByModel = kOfRow + 4;
    static constexpr std::size_t kForced = kByModel + 1;

    static std::size_t kind_of(const Draft& draft, std::size_t token);

    std::array<Counts, kForced + 1> counts_ = {};
};

// What drafts of a sequence's own text may cost it beyond what they save. So a text that drafts
// find nothing for takes hardly longer than without drafts. In tokens: a token's time is that of a
// step without drafts over the tokens that it makes.
class DraftAccount {
   public:
    double left() const { return left_; }
    // A step of the sequence made a token without drafts, and `right` more by them; their rows took
    // as long as `cost` tokens.
    void count(double cost, std::int32_t right);
    // A step made one token, and a draft would have begun with it, or not. Where that was so for
    // long, drafts are tried again whatever earlier ones have cost.
    void saw(bool right);

   private:
    static constexpr double kAtFirst = 1.0;
    double left_ = kAtFirst;
    std::int32_t right_in_a_row_ = 0;
};

class DraftGate {
   public:
    explicit DraftGate(const CacheShape& shape) : shape_(shape) {}

    // What a sequence of the step has without a draft, and its proposal.
    struct Share {
        SlotId slot = kNoSlot;
        std::int32_t rows = 0;  // 1 or more
        bool samples = false;   // a token comes of them
        // Of each drafted token that could be added, once those before it were right.
        std::vector<double> chances = {};
        // What its drafted rows may cost, in tokens (DraftAccount).
        double may_cost = std::numeric_limits<double>::infinity();
    };
    // Drafted rows for each share, slots ascending; at most `most` in all. The most tokens for the
    // time that is expected, where it is no longer than those that have rows may cost together.
    std::vector<std::int32_t> choose(std::span<const Share> shares, std::int32_t most);

    // What a draft model is asked for, before it has computed anything.
    struct Asking {
        std::int32_t tokens = 0;  // of each share that has as many chances; 0: it does not pay
        double saves = 0.0;       // milliseconds for each token that comes then, at most
    };
    // `round_ms`: a token more of each share that is asked for, by the model. None where it has
    // cost more than it may, or where a step of such shares was never measured.
    Asking ask(std::span<const Share> shares, double round_ms);
    // The model has answered.
    void answered() { answered_ = step_; }
    // What it did in the step of the last ask() took so long, and so many of its tokens came true.
    void asked(double milliseconds, std::int64_t right);
    // What a step is expected to take, in milliseconds.
    double expected(std::span<const Pass> passes) const;
    // What it takes longer for rows of drafts.
    double more_for(std::span<const Pass> with, std::span<const Pass> without) const {
        return std::max(expected(with) - expected(without), 0.0);
    }

    // A step of decode rows alone took so long. Ignored when it is not above 0.
    void took(std::span<const Pass> passes, double milliseconds);

    DraftRecord& record() { return record_; }
    // Of each token of a proposal, by what its sequence has seen and by what all have.
    std::vector<double> chances(const DraftRecord& own, const Draft& draft) const;
    // How many of the next tokens a proposal is expected to have right. What comes later is likely
    // to be proposed anew.
    static double worth(std::span<const double> chances);

   private:
    struct Time {
        double milliseconds = 0.0;
        std::int64_t step = 0;  // in which it was last measured
        std::int32_t count = 0;
    };
    double usual_chance(const Draft& draft, std::size_t token) const;
    bool knows(const Pass& pass) const;
    double expected(const Pass& pass) const;
    double shortest() const;
    bool is_stale(const Time& time) const;

    CacheShape shape_;
    std::map<std::int64_t, std::map<std::int64_t, Time>> times_;  // by slots and rows of a pass
    std::int64_t step_ = 0;
    std::optional<std::int64_t> answered_;  // in which step a draft model last did
    double alone_ms_ = 0.0;      // for each token without a draft model, as of the last ask()
    double balance_ms_ = 500.0;  // what a draft model may cost until it saves something
    DraftRecord record_;
};

}  // namespace fermata
