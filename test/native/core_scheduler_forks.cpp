// Models that cannot be cut back anywhere: their sequences are forked at marks and cut back to
// them.
#include "check.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 30;
constexpr auto kCellBytes = static_cast<std::int64_t>(sizeof(Cell));

// Whose forks need the slot's other positions, and whose forks stand alone.
CacheShape uncut(CacheShape shape, bool stands_alone) {
    shape.partial_truncate = false;
    shape.forks_stand_alone = stands_alone;
    return shape;
}

struct Case {
    CacheShape shape;
    std::int64_t ram = kPlenty;
};

const std::vector<Case> kCases = {{uncut(streams(6), false)},
                                  {uncut(streams(6), true)},
                                  {uncut(unified(6, 3072), false)},
                                  {uncut(unified(6, 3072), true)}};

World make(const Case& given) {
    return World(given.shape, {.parallel = 4, .step_token_budget = 64, .ram_limit = given.ram});
}

SequenceId submit(World& world, std::vector<Token> prompt, std::vector<std::int32_t> marks = {}) {
    return world.submit(
        {.prompt = std::move(prompt), .limits = {.max_tokens = 6}, .marks = std::move(marks)});
}

// Runs it alone, with the tokens that a fresh cache would give; returns the rows of its prompt.
std::int64_t rows_of(World& world, const std::vector<Token>& prompt,
                     std::vector<std::int32_t> marks = {}) {
    const SequenceId id = submit(world, prompt, std::move(marks));
    world.run();
    CHECK(world.outcomes.at(id).sampled == world.reference(prompt, 6));
    return world.outcomes.at(id).usage.prefilled_tokens;
}

}  // namespace

TEST(prompts_share_what_stands_before_a_mark) {
    for (const Case& given : kCases) {
        World world = make(given);
        const auto system = words(1, 150);
        CHECK_EQ(rows_of(world, joined(system, words(2, 80)), {150}), 230);
        CHECK_EQ(rows_of(world, joined(system, words(3, 80)), {150}), 80);
        CHECK_EQ(world.scheduler.stats().fork_uses, 1);
        // And a third time, when the slots are others'.
        for (std::uint32_t other = 10; other < 18; ++other)
            rows_of(world, words(other, 100));
        CHECK_EQ(rows_of(world, joined(system, words(4, 80)), {150}), 80);
    }
}

TEST(sequences_that_come_together_wait_for_the_mark) {
    for (const Case& given : kCases) {
        World world = make(given);
        std::vector<SequenceId> ids;
        for (std::uint32_t agent = 0; agent < 4; ++agent)
            ids.push_back(submit(world, joined(words(1, 150), words(5 + agent, 40)), {150}));
        world.run();
        CHECK_EQ(world.scheduler.stats().prefilled_tokens, 150 + 4 * 40);
        for (const SequenceId id : ids)
            CHECK(world.outcomes.at(id).sampled == world.reference(world.prompts.at(id), 6));
    }
}

TEST(a_branch_is_forked_at_its_second_sight) {
    for (const Case& given : kCases) {
        World world = make(given);
        CHECK_EQ(rows_of(world, joined(words(1, 150), words(2, 80))), 230);
        CHECK_EQ(rows_of(world, joined(words(1, 150), words(3, 80))), 230);
        CHECK_EQ(rows_of(world, joined(words(1, 150), words(4, 80))), 80);
    }
}

TEST(the_same_prompt_again_computes_its_end_only) {
    for (const Case& given : kCases) {
        World world = make(given);
        const auto prompt = words(1, 200);
        CHECK_EQ(rows_of(world, prompt), 200);
        CHECK_EQ(rows_of(world, prompt), 1);
        for (int choice = 0; choice < 4; ++choice)
            submit(world, words(2, 200));
        const std::int64_t before = world.scheduler.stats().prefilled_tokens;
        world.run();
        CHECK_EQ(world.scheduler.stats().prefilled_tokens - before, 203);
    }
}

TEST(a_wrong_guess_goes_back_to_the_hold) {
    for (const Case& given : kCases) {
        World world = make(given);
        const SequenceId id = submit(world, words(1, 120));
        world.scheduler.pause(id);
        world.run();
        CHECK(world.outcomes.at(id).held);
        const auto result = words(9, 60);
        world.scheduler.extend({.id = id, .tokens = joined(words(9, 20), words(7, 40))});
        world.run();
        world.scheduler.resume({.id = id, .tokens = result, .max_tokens = 6});
        world.run();
        const Outcome& outcome = world.outcomes.at(id);
        CHECK_EQ(outcome.usage.recomputed_tokens, 21);
        auto history = joined(world.prompts.at(id), {outcome.sampled.front()});
        history = joined(history, result);
        CHECK(std::vector<Token>(outcome.sampled.begin() + 1, outcome.sampled.end()) ==
              world.reference(history, 6));
        // The right beginning of the guess is computed once more: it is behind the fork.
        CHECK_EQ(world.scheduler.stats().prefilled_tokens, 120 + 61 + 61);
    }
}

TEST(marks_of_a_resume_are_behind_the_hold) {
    for (const Case& given : kCases) {
        World world = make(given);
        const SequenceId id = submit(world, words(1, 120));
        world.scheduler.pause(id);
        world.run();
        world.scheduler.resume({.id = id, .tokens = words(9, 80), .marks = {70}, .max_tokens = 6});
        world.run();
        auto history = joined(world.prompts.at(id), {world.outcomes.at(id).sampled.front()});
        history = joined(history, words(9, 70));
        CHECK_EQ(rows_of(world, joined(history, words(4, 30))), 30);
    }
}

TEST(forks_stay_within_the_limit) {
    for (Case given : kCases) {
        given.ram = 500 * kCellBytes;
        World world = make(given);
        for (std::uint32_t other = 1; other < 40; ++other) {
            rows_of(world, words(other, 150));
            const EngineStats stats = world.scheduler.stats();
            CHECK(stats.ram_bytes + stats.fork_bytes <= stats.ram_limit);
        }
        CHECK(world.scheduler.stats().fork_drops > 0);
        // One that could never fit is none, and costs nothing.
        given.ram = 100 * kCellBytes;
        World small = make(given);
        CHECK_EQ(rows_of(small, words(1, 150)), 150);
        CHECK_EQ(rows_of(small, words(1, 150)), 150);
        CHECK_EQ(small.scheduler.stats().forks, 0);
    }
}

TEST(a_backend_that_refuses_forks_computes_again) {
    for (const Case& given : kCases) {
        World saves = make(given);
        saves.backend.refuse_saves();
        CHECK_EQ(rows_of(saves, words(1, 150)), 150);
        CHECK_EQ(rows_of(saves, words(1, 150)), 150);
        World cuts = make(given);
        CHECK_EQ(rows_of(cuts, words(1, 150)), 150);
        cuts.backend.refuse_restores();
        CHECK_EQ(rows_of(cuts, words(1, 150)), 150);
    }
}

TEST(models_that_can_be_cut_keep_no_forks) {
    World world({streams(4)}, {.parallel = 4, .step_token_budget = 64, .ram_limit = kPlenty});
    CHECK_EQ(rows_of(world, words(1, 200), {50, 100}), 200);
    CHECK_EQ(rows_of(world, words(1, 200), {50, 100}), 1);
    CHECK_EQ(world.scheduler.stats().fork_saves, 0);
    // And their chunks are not cut at marks.
    CHECK_EQ(world.steps.front().prefill_rows, 64);
}

TEST_MAIN()
