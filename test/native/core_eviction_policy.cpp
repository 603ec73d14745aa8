// What leaves first: of a few, and over long traces of agents, beside a choice that knows the
// future.
#include "core/eviction_policy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "check.h"

using namespace fermata;

namespace {

constexpr Milliseconds kNow = 1'000'000;

Use used(Milliseconds ago, std::int32_t returns = 0) {
    return {.last_used = kNow - ago, .returns = returns};
}

std::size_t victim(const ReturnTimes& times, const std::vector<Candidate>& candidates,
                   const std::vector<Use>& absent = {}) {
    return choose_victim(candidates, kNow, times.rates(absent, kNow));
}

void add_returns(ReturnTimes& times, int count, Milliseconds after, std::int32_t returns = 0) {
    for (int i = 0; i < count; ++i)
        times.add_return(used(after, returns), kNow);
}

// A turn of an agent: its prompt continues the turn before.
struct Turn {
    Milliseconds at = 0, end = 0;
    int agent = 0;
    std::int64_t rows = 0, fresh = 0;
    std::size_t next = 0;  // the agent's next turn; the number of turns: there is none
};

// Sixteen agents at a time take `turns` turns of 500 ms each, then others come. Half of the tools
// take under 2 s, one in ten over 6 s.
std::vector<Turn> agents(int count, int turns) {
    std::mt19937 random(1);
    const auto part = [&] { return static_cast<double>(random()) / 4294967296.0; };
    std::vector<Turn> trace;
    std::vector<Milliseconds> free_at(16);
    for (int agent = 0; agent < count; ++agent) {
        Milliseconds& at = *std::ranges::min_element(free_at);
        std::int64_t rows = 1000;
        for (int turn = 0; turn < turns; ++turn) {
            trace.push_back({at, at + 500, agent, rows, turn == 0 ? rows : 150});
            rows += 150;
            at += 500 +
                  static_cast<Milliseconds>(std::min(12'000.0, 1200 * std::pow(1 - part(), -0.7)));
        }
    }
    std::ranges::stable_sort(trace, {}, &Turn::at);
    std::map<int, std::size_t> next;
    for (std::size_t i = trace.size(); i-- > 0;) {
        trace[i].next = next.contains(trace[i].agent) ? next[trace[i].agent] : trace.size();
        next[trace[i].agent] = i;
    }
    return trace;
}

// Rows that a cache of eight sequences computes. `leaves(kept, now)` is the index of who leaves.
template <typename Leaves>
std::int64_t rows_computed(const std::vector<Turn>& trace, ReturnTimes& times, Leaves&& leaves) {
    std::vector<std::pair<Turn, Use>> kept;
    std::map<int, Use> gone;
    std::int64_t computed = 0;
    for (const Turn& turn : trace) {
        const auto own = std::ranges::find_if(
            kept, [&](const auto& entry) { return entry.first.agent == turn.agent; });
        const bool found = own != kept.end();
        computed += found ? turn.fresh : turn.rows;
        Use use = {};
        if (found || gone.contains(turn.agent)) {
            const Use before = found ? own->second : gone[turn.agent];
            times.add_return(before, turn.at);
            use = used_again(before, turn.at);
        }
        if (found) kept.erase(own);
        gone.erase(turn.agent);
        if (kept.size() == 8) {
            std::vector<Use> absent;
            for (const auto& [agent, left] : gone)
                absent.push_back(left);
            for (const auto& entry : kept)
                absent.push_back(entry.second);
            const std::size_t index = leaves(kept, times.rates(absent, turn.at), turn.at);
            gone[kept[index].first.agent] = kept[index].second;
            kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(index));
        }
        use.last_used = turn.end;
        kept.emplace_back(turn, use);
    }
    return computed;
}

double over_belady(const std::vector<Turn>& trace) {
    ReturnTimes learned, unused;
    const auto ours = rows_computed(
        trace, learned, [](const auto& kept, const ReturnTable& rates, Milliseconds now) {
            std::vector<Candidate> candidates;
            for (const auto& [turn, use] : kept)
                candidates.push_back({.use = use, .rows = turn.rows});
            return choose_victim(candidates, now, rates);
        });
    const auto least =
        rows_computed(trace, unused, [](const auto& kept, const ReturnTable&, Milliseconds) {
            const auto furthest = std::ranges::max_element(
                kept, {}, [](const auto& entry) { return entry.first.next; });
            return static_cast<std::size_t>(furthest - kept.begin());
        });
    return static_cast<double>(ours) / static_cast<double>(least);
}

}  // namespace

TEST(where_nothing_is_known_what_was_used_first_leaves_first) {
    CHECK_EQ(victim({}, {{.use = used(10)}, {.use = used(5000)}, {.use = used(300)}}), 1u);
    CHECK_EQ(victim({}, {{.use = used(90'000)}, {.use = used(100'000)}}), 1u);
}

TEST(who_is_expected_leaves_last) {
    CHECK_EQ(victim({}, {{.use = used(60'000), .leased = true}, {.use = used(10)}}), 1u);
}

TEST(few_rows_and_much_room_leave_first) {
    CHECK_EQ(victim({}, {{.use = used(10), .rows = 100}, {.use = used(10), .rows = 50}}), 1u);
    CHECK_EQ(victim({}, {{.use = used(10), .room = 100}, {.use = used(10), .room = 50}}), 0u);
}

TEST(what_is_due_stays_and_what_is_overdue_leaves) {
    ReturnTimes times;
    add_returns(times, 20, 3000);
    const std::vector<Use> absent(5, used(60'000));
    CHECK_EQ(victim(times, {{.use = used(2500)}, {.use = used(200)}}, absent), 1u);
    CHECK_EQ(victim(times, {{.use = used(200)}, {.use = used(9000)}}, absent), 1u);
}

TEST(conversations_that_are_as_long_as_others_were_leave_first) {
    ReturnTimes times;
    add_returns(times, 20, 2000, 0);
    const std::vector<Candidate> candidates = {{.use = used(200, 0)}, {.use = used(1000, 1)}};
    CHECK_EQ(victim(times, candidates), 0u);
    CHECK_EQ(victim(times, candidates, std::vector<Use>(5, used(60'000, 1))), 1u);
    // The same from those that are forgotten.
    for (int i = 0; i < 5; ++i)
        times.add_loss(used(60'000, 1), kNow);
    CHECK_EQ(victim(times, candidates), 1u);
}

TEST(who_came_as_far_as_nobody_before_is_less_expected) {
    ReturnTimes times;
    add_returns(times, 20, 2000, 0);
    add_returns(times, 20, 2000, 1);
    const std::vector<Candidate> candidates = {{.use = used(200, 1)},
                                               {.use = used(200, 2), .rows = 2}};
    CHECK_EQ(victim(times, candidates), 1u);
    add_returns(times, 5, 2000, 2);
    CHECK_EQ(victim(times, candidates), 0u);
}

TEST(who_came_back_more_often_than_is_counted_is_of_the_last_class) {
    ReturnTimes times;
    add_returns(times, 20, 2000, 7);
    add_returns(times, 20, 500'000, 0);
    CHECK_EQ(victim(times, {{.use = used(1000, 40)}, {.use = used(1000, 0)}}), 1u);
    CHECK_EQ(victim(times, {{.use = used(kNow, 40)}, {.use = used(1000, 7)}}), 0u);
}

TEST(what_was_learned_first_counts_less_and_less) {
    ReturnTimes times, new_ones;
    add_returns(times, 100'000, 500'000);
    add_returns(times, 12'000, 1000);
    add_returns(new_ones, 12'000, 1000);
    CHECK(times.rates({}, kNow)[0][0] > 0.8 * new_ones.rates({}, kNow)[0][0]);
}

TEST(agents_compute_little_more_than_if_the_future_were_known) {
    CHECK(over_belady(agents(200, 2)) < 1.1);
    CHECK(over_belady(agents(200, 3)) < 1.2);
    CHECK(over_belady(agents(200, 6)) < 1.35);
}

TEST_MAIN()
