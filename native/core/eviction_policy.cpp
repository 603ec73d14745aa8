#include "core/eviction_policy.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace fermata {

namespace {

// The first time of a table ends here; each of the others is twice as long as all before it.
constexpr Milliseconds kFirstTime = 1024;

// What is assumed where nothing was seen counts as so much of a sequence: of a class, what is known
// of all; of all, that one in two comes back in each time.
constexpr double kAssumed = 0.5;
constexpr double kAssumedChance = 0.5;
// Of those that came back twice or more often, half of what is known of all: where the first ones
// get to may well be the end of such conversations.
constexpr double kAssumedFurther = 0.5;
constexpr std::size_t kFurther = 2;

// When so much is learned, half of it is forgotten: loads change.
constexpr double kMostLearned = 4096;

Milliseconds beginning_of(std::size_t time) {
    return time == 0 ? 0 : kFirstTime << (time - 1);
}

Milliseconds age_of(const Use& use, Milliseconds now) {
    return std::max<Milliseconds>(now - use.last_used, 0);
}

std::size_t class_of(const Use& use) {
    return std::min(static_cast<std::size_t>(use.returns), kReturnClasses - 1);
}

std::size_t time_of(Milliseconds age) {
    const auto doublings = std::bit_width(static_cast<std::uint64_t>(age / kFirstTime));
    return std::min(static_cast<std::size_t>(doublings), kReturnTimes - 1);
}

void count(ReturnTable& table, const Use& use, Milliseconds now) {
    table[class_of(use)][time_of(age_of(use, now))] += 1;
}

// Of a millisecond: between the beginnings of two times in proportion.
double rate_of(const ReturnTable& rates, const Use& use, Milliseconds now) {
    const auto& row = rates[class_of(use)];
    const Milliseconds age = age_of(use, now);
    const std::size_t time = time_of(age);
    const std::size_t next = std::min(time + 1, kReturnTimes - 1);
    const auto into = static_cast<double>(age - beginning_of(time));
    const auto length = static_cast<double>(beginning_of(time + 1) - beginning_of(time));
    return row[time] + (row[next] - row[time]) * std::min(into / length, 1.0);
}

using Chances = std::array<double, kReturnTimes>;

// The greatest ratio of returns to milliseconds, over how long the sequence is kept from `time` on.
double best_rate(const Chances& chances, std::size_t time) {
    double still_away = 1, returned = 0, kept_ms = 0, best = 0;
    for (; time < kReturnTimes; ++time) {
        const auto length = static_cast<double>(beginning_of(time + 1) - beginning_of(time));
        const double returning = still_away * chances[time];
        kept_ms += (still_away - returning / 2) * length;
        returned += returning;
        still_away -= returning;
        best = std::max(best, returned / kept_ms);
    }
    return best;
}

}  // namespace

Use used_again(const Use& use, Milliseconds now) {
    const Milliseconds age = std::max<Milliseconds>(now - use.last_used, 1);
    return {.last_used = now,
            .gap = use.gap == 0 ? age : (use.gap + age + 1) / 2,
            .returns = use.returns + 1};
}

void ReturnTimes::add_return(const Use& use, Milliseconds now) {
    count(returns_, use, now);
    forget_old();
}

void ReturnTimes::add_loss(const Use& use, Milliseconds now) {
    count(losses_, use, now);
    forget_old();
}

void ReturnTimes::forget_old() {
    if (++learned_ < kMostLearned) return;
    for (ReturnTable* table : {&returns_, &losses_})
        for (auto& row : *table)
            for (double& sequences : row)
                sequences /= 2;
    learned_ /= 2;
}

// The chance to come back in a time is the share of those that did, among all that were away when
// it began. Who is in it now has had half of it; in the first one, that says nothing yet. A class
// has few sequences at first: it begins with what is known of all, or a part of that.
ReturnTable ReturnTimes::rates(std::span<const Use> absent, Milliseconds now) const {
    ReturnTable stayed = losses_;
    for (const Use& use : absent)
        count(stayed, use, now);
    ReturnTable seen = {};
    Chances returned_of_all = {}, seen_of_all = {};
    for (std::size_t row = 0; row < kReturnClasses; ++row) {
        double later = 0;
        for (std::size_t time = kReturnTimes; time-- > 0;) {
            later += returns_[row][time];
            seen[row][time] = later + (time > 0 ? stayed[row][time] / 2 : 0);
            later += stayed[row][time];
            returned_of_all[time] += returns_[row][time];
            seen_of_all[time] += seen[row][time];
        }
    }
    ReturnTable rates = {};
    for (std::size_t row = 0; row < kReturnClasses; ++row) {
        const double like_all = row < kFurther ? 1 : kAssumedFurther;
        Chances chances;
        for (std::size_t time = 0; time < kReturnTimes; ++time) {
            const double of_all = (returned_of_all[time] + kAssumed * kAssumedChance) /
                                  (seen_of_all[time] + kAssumed);
            chances[time] =
                (returns_[row][time] + kAssumed * like_all * of_all) / (seen[row][time] + kAssumed);
        }
        for (std::size_t time = 0; time < kReturnTimes; ++time)
            rates[row][time] = best_rate(chances, time);
    }
    return rates;
}

std::size_t choose_victim(std::span<const Candidate> candidates, Milliseconds now,
                          const ReturnTable& rates) {
    const auto worth = [&](const Candidate& candidate) {
        const double rows = static_cast<double>(candidate.rows);
        const double room = static_cast<double>(candidate.room);
        const double rate = rate_of(rates, candidate.use, now);
        return std::tuple(candidate.leased, rows / room * rate, candidate.use.last_used);
    };
    const auto victim = std::ranges::min_element(candidates, {}, worth);
    return static_cast<std::size_t>(victim - candidates.begin());
}

}  // namespace fermata
