#include "core/draft_gate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>

namespace fermata {

namespace {

// What was seen longer ago than so many tokens counts half and less.
constexpr double kMemory = 64.0;
// So many tokens weigh as much as what is usual elsewhere.
constexpr double kWeightOfUsual = 4.0;
// Before anything was seen, by the class of the match's length.
constexpr std::array<double, 5> kFirstGuess = {0.4, 0.5, 0.6, 0.75, 0.9};
constexpr double kFirstGuessWithoutMatch = 0.5;
constexpr double kFirstGuessOfRow = 0.8;
constexpr double kFirstGuessOfModel = 0.7;
constexpr double kFirstGuessOfForced = 0.9;
// So many tokens tell which of two proposals is better.
constexpr std::size_t kCompared = 4;

// Drafts must promise so much more, for what is measured is not exact.
constexpr double kLeastGain = 1.05;
// Less likely rows are not thought about.
constexpr double kLeastChance = 0.05;

// What drafts of its own text may cost a sequence for each token that it makes without them, in
// tokens; and what it owes at most, for a step that took far longer than expected.
constexpr double kRiskedByText = 0.015;
constexpr double kMostOwedByText = 1.0;
// So many proposals in a row that begin with what the text then says: it repeats something.
constexpr std::int32_t kRepeats = 8;

// A time that was not measured for so many steps is measured again when a draft could pay.
constexpr std::int64_t kStaleAfter = 500;
// A draft model that did not pay for as long is asked for so many tokens.
constexpr std::int32_t kTrial = 4;
// What it counts for then, of a token's time: few texts are read for it. The first time it counts
// whole, as nothing is known.
constexpr double kTrialSaves = 1.0 / 32.0;
// What a draft model may cost beyond what it saves, of the time of all steps that only decode; and
// how much of what it may cost is left for later, in milliseconds. What it cost beyond that counts
// up to kMostOwed: a machine that stood still for a minute says nothing about the model.
constexpr double kRiskedPart = 0.03;
constexpr double kMostLeft = 5'000.0;
constexpr double kMostOwed = 500.0;
// What a new measurement weighs, and how much longer than expected it counts at most.
constexpr double kWeightOfNew = 0.1;
constexpr double kMostLonger = 3.0;

// Tokens that the text has in common before this one, once those before it were right.
std::int32_t match_of(const Draft& draft, std::size_t token) {
    return draft.match + static_cast<std::int32_t>(token);
}

}  // namespace

std::size_t DraftRecord::kind_of(const Draft& draft, std::size_t token) {
    if (token >= draft.forced_from) return kForced;
    if (draft.by_model) return kByModel;
    if (!draft.row.empty()) return kOfRow + static_cast<std::size_t>(draft.row[token]);
    if (draft.match == 0) {
        const auto misses = token == 0 ? static_cast<std::size_t>(draft.misses) : 0;
        return kLengths + std::min(misses, kMisses - 1);
    }
    constexpr std::array<std::int32_t, kLengths - 1> kBegins = {2, 3, 4, 6, 10, 20};
    return static_cast<std::size_t>(std::ranges::upper_bound(kBegins, match_of(draft, token)) -
                                    kBegins.begin());
}

void DraftRecord::count(const Draft& draft, std::int32_t right, bool wrong) {
    const auto tried = static_cast<std::size_t>(right + (wrong ? 1 : 0));
    for (std::size_t token = 0; token < tried; ++token) {
        Counts& counts = counts_[kind_of(draft, token)];
        counts.right += token < static_cast<std::size_t>(right) ? 1.0 : 0.0;
        counts.tried += 1.0;
        if (counts.tried <= kMemory) continue;
        counts.right *= kMemory / counts.tried;
        counts.tried = kMemory;
    }
}

double DraftRecord::chance(const Draft& draft, std::size_t token, double usual) const {
    const Counts& counts = counts_[kind_of(draft, token)];
    return (counts.right + usual * kWeightOfUsual) / (counts.tried + kWeightOfUsual);
}

void DraftAccount::count(double cost, std::int32_t right) {
    left_ = std::max(left_ + kRiskedByText + right - cost, -kMostOwedByText);
}

void DraftAccount::saw(bool right) {
    right_in_a_row_ = right ? right_in_a_row_ + 1 : 0;
    if (right_in_a_row_ < kRepeats) return;
    right_in_a_row_ = 0;
    left_ = std::max(left_, kAtFirst);
}

double DraftGate::usual_chance(const Draft& draft, std::size_t token) const {
    const auto guess = [&] {
        if (token >= draft.forced_from) return kFirstGuessOfForced;
        if (draft.by_model) return kFirstGuessOfModel;
        if (!draft.row.empty()) return kFirstGuessOfRow;
        if (draft.match == 0) return kFirstGuessWithoutMatch;
        // The longer the match the better, from 3 tokens to 20.
        const double place = std::clamp((match_of(draft, token) - 3.0) / 4.0, 0.0, 4.0);
        return kFirstGuess[static_cast<std::size_t>(place)];
    };
    return record_.chance(draft, token, guess());
}

std::vector<double> DraftGate::chances(const DraftRecord& own, const Draft& draft) const {
    std::vector<double> chances;
    for (std::size_t token = 0; token < draft.tokens.size(); ++token)
        chances.push_back(own.chance(draft, token, usual_chance(draft, token)));
    return chances;
}

double DraftGate::worth(std::span<const double> chances) {
    double worth = 0.0;
    double chance = 1.0;
    for (const double next : chances.first(std::min(chances.size(), kCompared))) {
        chance *= next;
        worth += chance;
    }
    return worth;
}

std::vector<std::int32_t> DraftGate::choose(std::span<const Share> shares, std::int32_t most) {
    struct Row {
        std::size_t share;
        double chance;  // that it and those before it are right
    };
    std::vector<Row> rows;
    std::vector<SlotRows> batch;
    double tokens = 0.0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const Share& share = shares[i];
        batch.push_back({share.slot, share.rows});
        tokens += share.samples ? 1.0 : 0.0;
        if (share.may_cost <= 0.0) continue;
        double chance = 1.0;
        for (const double next : share.chances) {
            chance *= next;
            if (chance < kLeastChance) break;
            rows.push_back({i, chance});
        }
    }
    std::ranges::stable_sort(rows, [](const Row& a, const Row& b) { return a.chance > b.chance; });
    if (rows.size() > static_cast<std::size_t>(std::max(most, 0)))
        rows.resize(static_cast<std::size_t>(std::max(most, 0)));

    const double alone = expected(split_into_passes(batch, shape_));
    const double token_ms = alone / std::max(tokens, 1.0);
    double best = kLeastGain * tokens / alone;
    double may_cost = 0.0;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Share& share = shares[rows[i].share];
        if (batch[rows[i].share].rows == share.rows) may_cost += share.may_cost * token_ms;
        batch[rows[i].share].rows += 1;
        tokens += rows[i].chance;
        const double time = expected(split_into_passes(batch, shape_));
        if (tokens / time <= best || time - alone > may_cost) continue;
        best = tokens / time;
        taken = i + 1;
    }
    std::vector<std::int32_t> chosen(shares.size(), 0);
    for (std::size_t i = 0; i < taken; ++i)
        chosen[rows[i].share] += 1;
    return chosen;
}

DraftGate::Asking DraftGate::ask(std::span<const Share> shares, double round_ms) {
    std::vector<SlotRows> batch;
    double tokens = 0.0;
    for (const Share& share : shares) {
        batch.push_back({share.slot, share.rows});
        tokens += share.samples ? 1.0 : 0.0;
    }
    const auto passes = split_into_passes(batch, shape_);
    const bool can_ask =
        std::ranges::any_of(shares, [](const Share& share) { return !share.chances.empty(); });
    const bool is_measured =
        std::ranges::all_of(passes, [this](const Pass& pass) { return knows(pass); });
    if (!can_ask || tokens == 0.0 || !is_measured || balance_ms_ <= 0.0) return {};
    alone_ms_ = expected(passes) / tokens;
    double best = alone_ms_ / kLeastGain;
    Asking asking;
    std::vector<double> chances(shares.size(), 1.0);
    for (std::int32_t count = 1;; ++count) {
        bool goes_on = false;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            const auto token = static_cast<std::size_t>(count - 1);
            if (token >= shares[i].chances.size()) continue;
            chances[i] *= shares[i].chances[token];
            if (chances[i] < kLeastChance) continue;
            batch[i].rows += 1;
            tokens += chances[i];
            goes_on = true;
        }
        if (!goes_on) break;
        const double time = expected(split_into_passes(batch, shape_)) + count * round_ms;
        if (time / tokens >= best) continue;
        best = time / tokens;
        asking = {.tokens = count, .saves = alone_ms_ - best};
    }
    if (asking.tokens > 0 || (answered_ && step_ - *answered_ <= kStaleAfter)) return asking;
    return {.tokens = kTrial, .saves = alone_ms_ * (answered_ ? kTrialSaves : 1.0)};
}

void DraftGate::asked(double milliseconds, std::int64_t right) {
    const double saved = static_cast<double>(right) * alone_ms_;
    balance_ms_ = std::clamp(balance_ms_ + saved - milliseconds, -kMostOwed, kMostLeft);
}

void DraftGate::took(std::span<const Pass> passes, double milliseconds) {
    if (passes.empty() || !(milliseconds > 0.0)) return;
    ++step_;
    balance_ms_ = std::min(balance_ms_ + kRiskedPart * milliseconds, kMostLeft);
    // One number for all passes of a step: each is off by as much as the whole.
    const double factor = milliseconds / expected(passes);
    std::vector<double> each;
    for (const Pass& pass : passes)
        each.push_back(expected(pass) * factor);
    for (std::size_t i = 0; i < passes.size(); ++i) {
        Time& time = times_[passes[i].slots][passes[i].rows];
        if (time.count == 0 || is_stale(time)) {
            time = {.milliseconds = each[i], .step = step_, .count = 1};
            continue;
        }
        time.step = step_;
        time.count += 1;
        const double weight = std::max(kWeightOfNew, 1.0 / time.count);
        const double seen = std::min(each[i], kMostLonger * time.milliseconds);
        time.milliseconds += weight * (seen - time.milliseconds);
    }
}

bool DraftGate::is_stale(const Time& time) const {
    return step_ - time.step > kStaleAfter;
}

// So many slots with as many rows at most.
bool DraftGate::knows(const Pass& pass) const {
    const auto found = times_.find(pass.slots);
    return found != times_.end() && found->second.begin()->first <= pass.rows;
}

double DraftGate::expected(std::span<const Pass> passes) const {
    double sum = 0.0;
    for (const Pass& pass : passes)
        sum += expected(pass);
    return sum;
}

// Between two that were measured, in proportion. Beyond the last one as long as that: if it is
// longer, one step tells.
double DraftGate::expected(const Pass& pass) const {
    const auto found = times_.find(pass.slots);
    if (found == times_.end()) return shortest();
    const auto& by_rows = found->second;
    // A row a slot is the measure of all others: an old time is better than none.
    const auto counts = [&](const auto& entry) {
        return entry.first == pass.slots || !is_stale(entry.second);
    };
    auto above = by_rows.lower_bound(pass.rows);
    auto below = std::make_reverse_iterator(above);
    above = std::find_if(above, by_rows.end(), counts);
    if (above != by_rows.end() && above->first == pass.rows) return above->second.milliseconds;
    below = std::find_if(below, by_rows.rend(), counts);
    if (below == by_rows.rend() && above == by_rows.end()) return shortest();
    if (below == by_rows.rend()) return above->second.milliseconds;
    if (above == by_rows.end()) return below->second.milliseconds;
    const double part = static_cast<double>(pass.rows - below->first) /
                        static_cast<double>(above->first - below->first);
    return below->second.milliseconds +
           part * (above->second.milliseconds - below->second.milliseconds);
}

double DraftGate::shortest() const {
    double shortest = std::numeric_limits<double>::infinity();
    for (const auto& [slots, by_rows] : times_)
        shortest = std::min(shortest, by_rows.begin()->second.milliseconds);
    return std::isfinite(shortest) ? shortest : 1.0;
}

}  // namespace fermata
