// Thousands of random requests, cancels, holds and resumes: whatever happens around a sequence, it
// samples what it would have sampled alone, and nothing leaks. With a fixed chunk that holds even
// on a backend whose results depend on the shape of each batch.
#include <random>

#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

// Few sequences are remembered, so that they are often replaced and each step's check is quick.
void soak(CacheShape shape, SchedulerConfig config, std::uint32_t seed, int operations) {
    config.left_limit = 24;
    World world(shape, config);
    if (shape.fixed_chunk > 0) world.backend.feel_batch_shapes();
    std::mt19937 random(seed);
    const auto below = [&random](std::uint32_t n) {
        return static_cast<std::uint32_t>(random() % n);
    };
    // What each sequence must have sampled: its history so far with every resumed token.
    std::map<SequenceId, std::vector<std::pair<std::size_t, std::vector<Token>>>> resumes;
    // What the next resume of a sequence will be, once somebody has guessed at it.
    std::map<SequenceId, std::vector<Token>> results;
    const auto result_of = [&](SequenceId id) {
        auto& result = results[id];
        if (result.empty()) result = words(2000 + below(9), 1 + below(40));
        return result;
    };
    std::vector<SequenceId> alive;
    for (int i = 0; i < operations; ++i) {
        const std::uint32_t dice = below(10);
        if (dice < 3 && alive.size() < 20) {
            const auto prefix = words(below(3), 10 + below(60));
            alive.push_back(world.submit(joined(prefix, words(1000 + below(5), 1 + below(30))),
                                         static_cast<std::int32_t>(1 + below(30))));
        } else if (!alive.empty() && dice < 5) {
            const SequenceId id = alive[below(static_cast<std::uint32_t>(alive.size()))];
            if (world.outcomes[id].held && below(2) == 0) {
                // A guess: right as far as it goes, or not.
                auto guess = result_of(id);
                guess.resize(1 + below(static_cast<std::uint32_t>(guess.size())));
                if (below(4) == 0) guess = joined(guess, words(3000 + below(3), 1 + below(20)));
                world.scheduler.extend({.id = id, .tokens = guess, .keep_pending = below(8) != 0});
            } else if (world.outcomes[id].held) {
                const auto result = result_of(id);
                results.erase(id);
                resumes[id].push_back({world.outcomes[id].sampled.size(), result});
                world.outcomes[id].held = false;
                world.scheduler.resume({.id = id,
                                        .tokens = result,
                                        .max_tokens = static_cast<std::int32_t>(1 + below(10))});
            } else if (dice == 3) {
                world.scheduler.pause(id);
            } else if (below(4) == 0) {
                world.scheduler.cancel(id, world.now);
            }
        } else {
            // With a fixed chunk one sequence has rows in a step.
            for (int n = shape.fixed_chunk > 0 ? config.parallel : 1; n > 0; --n)
                world.step();
        }
        world.now += 1;
        std::erase_if(alive, [&world](SequenceId id) {
            return world.outcomes[id].finished || world.outcomes[id].failed;
        });
    }
    for (const SequenceId id : alive)
        world.scheduler.cancel(id, world.now);
    world.run();
    const EngineStats stats = world.scheduler.stats();
    CHECK_EQ(stats.cells_used, 0);
    CHECK_EQ(stats.running + stats.waiting + stats.held, 0);
    CHECK_EQ(stats.cells_used + stats.cells_retained + stats.cells_free,
             world.backend.shape().cells_total);
    CHECK_EQ(world.backend.cells_in_use(), stats.cells_retained);

    int compared = 0;
    for (const auto& [id, outcome] : world.outcomes) {
        auto history = world.prompts.at(id);
        auto next = resumes[id].begin();
        for (std::size_t i = 0; i < outcome.sampled.size(); ++i) {
            for (; next != resumes[id].end() && next->first == i; ++next)
                history = joined(history, next->second);
            CHECK_EQ(outcome.sampled[i], world.backend.next_token(history));
            history.push_back(outcome.sampled[i]);
            compared += 1;
        }
    }
    CHECK(compared > operations / 8);
}

}  // namespace

TEST(streams_with_room) {
    soak(streams(12, 256), {.parallel = 6, .step_token_budget = 48}, 1, 20'000);
}
TEST(streams_without_room) {
    soak(streams(3, 256), {.parallel = 3, .step_token_budget = 16}, 2, 20'000);
}
TEST(unified_with_room) {
    soak(unified(16, 4096, 256), {.parallel = 6, .step_token_budget = 48}, 3, 20'000);
}
TEST(unified_without_room) {
    soak(unified(16, 400, 256), {.parallel = 6, .step_token_budget = 48}, 4, 20'000);
}
TEST(fixed_chunks_with_room) {
    CacheShape shape = streams(12, 256);
    shape.fixed_chunk = 8;
    soak(shape, {.parallel = 6, .step_token_budget = 48}, 6, 5'000);
}
TEST(fixed_chunks_without_room) {
    CacheShape shape = streams(3, 256);
    shape.fixed_chunk = 8;
    soak(shape, {.parallel = 3, .step_token_budget = 16}, 7, 5'000);
}
TEST(one_row_a_decode_for_a_cache_that_cannot_be_truncated) {
    CacheShape shape = streams(6, 256);
    shape.partial_truncate = false;
    shape.fixed_chunk = 1;
    soak(shape, {.parallel = 4, .step_token_budget = 16}, 8, 5'000);
}
TEST(streams_without_room_over_ram) {
    soak(streams(3, 256), {.parallel = 3, .step_token_budget = 16, .ram_limit = 1 << 20}, 9, 5'000);
}
TEST(streams_over_little_ram) {
    soak(streams(4, 256), {.parallel = 2, .step_token_budget = 32, .ram_limit = 1 << 13}, 10,
         5'000);
}
TEST(unified_without_room_over_ram) {
    soak(unified(16, 400, 256), {.parallel = 6, .step_token_budget = 48, .ram_limit = 1 << 20}, 11,
         5'000);
}
TEST(a_cache_that_cannot_be_truncated_over_ram) {
    CacheShape shape = streams(4, 256);
    shape.partial_truncate = false;
    soak(shape, {.parallel = 3, .step_token_budget = 16, .ram_limit = 1 << 20}, 12, 5'000);
}
TEST(forks_that_stand_alone) {
    CacheShape shape = streams(4, 256);
    shape.partial_truncate = false;
    shape.forks_stand_alone = true;
    soak(shape, {.parallel = 3, .step_token_budget = 16, .ram_limit = 1 << 20}, 13, 5'000);
}
TEST(forks_in_little_ram) {
    CacheShape shape = streams(4, 256);
    shape.partial_truncate = false;
    soak(shape, {.parallel = 3, .step_token_budget = 16, .ram_limit = 1 << 13}, 15, 5'000);
}
TEST(forks_in_the_unified_layout) {
    CacheShape shape = unified(8, 400, 256);
    shape.partial_truncate = false;
    soak(shape, {.parallel = 4, .step_token_budget = 32, .ram_limit = 1 << 18}, 16, 5'000);
}
TEST(fixed_chunks_over_ram) {
    CacheShape shape = streams(3, 256);
    shape.fixed_chunk = 8;
    soak(shape, {.parallel = 3, .step_token_budget = 16, .ram_limit = 1 << 20}, 14, 5'000);
}
TEST(one_at_a_time) {
    soak(streams(4, 256), {.parallel = 1, .step_token_budget = 64}, 5, 20'000);
}

TEST_MAIN()
