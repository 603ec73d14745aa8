// The step: order of work, sharing of prefixes, room in the cache, exact tokens throughout.
#include <algorithm>

#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

const std::vector<CacheShape> kLayouts = {streams(12), unified(12, 12 * 512)};

}  // namespace

TEST(one_sequence_samples_what_a_fresh_cache_would) {
    for (const CacheShape& shape : kLayouts) {
        World world(shape);
        const auto prompt = words(1, 200);
        const SequenceId id = world.submit(prompt, 32);
        world.run();
        const Outcome& outcome = world.outcomes.at(id);
        CHECK(outcome.finished);
        CHECK(outcome.finish == FinishReason::kLength);
        CHECK_EQ(outcome.sampled, world.reference(prompt, 32));
        CHECK_EQ(outcome.usage.prefilled_tokens, 200);
        CHECK_EQ(outcome.usage.generated_tokens, 32);
        CHECK_EQ(world.backend.rows(), 231);  // the last sampled token is never decoded
    }
}

TEST(a_shared_prefix_is_computed_once) {
    for (const CacheShape& shape : kLayouts) {
        World world(shape);
        const auto prefix = words(7, 300);
        std::vector<SequenceId> ids;
        for (std::uint32_t i = 0; i < 8; ++i)
            ids.push_back(world.submit(joined(prefix, words(100 + i, 20)), 10));
        world.run();
        for (std::uint32_t i = 0; i < 8; ++i) {
            const Outcome& outcome = world.outcomes.at(ids[i]);
            CHECK(outcome.finished);
            CHECK_EQ(outcome.sampled, world.reference(joined(prefix, words(100 + i, 20)), 10));
        }
        CHECK_EQ(world.backend.rows(), 300 + 8 * 20 + 8 * 9);
        CHECK_EQ(world.scheduler.stats().cached_tokens, 7 * 300);
    }
}

TEST(what_waits_has_no_sampler_yet) {
    World world(streams(4), {.parallel = 1, .step_token_budget = 64});
    for (std::uint32_t i = 0; i < 5; ++i)
        world.submit(words(i, 40), 20);
    world.step();
    CHECK_EQ(world.backend.samplers_made, 1);
    world.run();
    CHECK_EQ(world.backend.samplers_made, 5);
    for (std::uint32_t i = 0; i < 5; ++i)
        CHECK_EQ(world.outcomes.at(i + 1).sampled, world.reference(words(i, 40), 20));
}

TEST(a_prompt_that_was_seen_costs_one_row) {
    for (const CacheShape& shape : kLayouts) {
        World world(shape);
        const auto prompt = words(3, 150);
        world.submit(prompt, 1);
        world.run();
        const auto rows = world.backend.rows();
        const SequenceId again = world.submit(prompt, 1);
        world.run();
        CHECK_EQ(world.backend.rows() - rows, 1);
        CHECK_EQ(world.outcomes.at(again).usage.cached_tokens, 149);
    }
}

TEST(decode_rows_come_before_prefill) {
    World world(streams(4), {.parallel = 4, .step_token_budget = 16});
    const SequenceId first = world.submit(words(1, 4), 100);
    world.step();
    world.submit(words(2, 200), 1);
    for (int i = 0; i < 10; ++i) {
        const std::size_t before = world.outcomes.at(first).sampled.size();
        world.step();
        CHECK_EQ(world.outcomes.at(first).sampled.size(), before + 1);
        CHECK_EQ(world.steps.back().decode_rows, 1);
        CHECK_EQ(world.steps.back().prefill_rows, 15);
    }
}

TEST(prompts_are_prefilled_one_after_the_other_with_decode_between) {
    World world(streams(4, 512, 512), {.parallel = 4, .step_token_budget = 512});
    world.submit(words(1, 4), 100);
    world.step();
    std::vector<SequenceId> prompts;
    for (std::uint32_t i = 2; i < 5; ++i)
        prompts.push_back(world.submit(words(i, 180), 100));
    std::vector<std::int32_t> prefill_rows;
    std::vector<std::size_t> begun;
    for (int i = 0; i < 8; ++i) {
        world.step();
        prefill_rows.push_back(world.steps.back().prefill_rows);
        begun.push_back(static_cast<std::size_t>(
            std::count_if(prompts.begin(), prompts.end(),
                          [&](SequenceId id) { return !world.outcomes[id].sampled.empty(); })));
    }
    CHECK(prefill_rows == (std::vector<std::int32_t>{180, 0, 0, 180, 0, 0, 180, 0}));
    CHECK(begun == (std::vector<std::size_t>{1, 1, 1, 2, 2, 2, 3, 3}));
}

TEST(short_prompts_are_prefilled_together) {
    World world(streams(8, 512, 512), {.parallel = 8, .step_token_budget = 512});
    world.submit(words(1, 4), 100);
    world.step();
    for (std::uint32_t i = 2; i < 6; ++i)
        world.submit(words(i, 20), 100);
    world.step();
    CHECK_EQ(world.steps.back().prefill_rows, 80);
    world.submit(words(9, 20), 100);
    world.step();
    CHECK_EQ(world.steps.back().prefill_rows, 20);
}

TEST(running_sequences_share_one_pass_over_the_weights) {
    World world(streams(12));
    for (std::uint32_t i = 0; i < 6; ++i)
        world.submit(words(i, 10), 20);
    world.step();
    world.step();
    CHECK_EQ(world.steps.back().decode_rows, 6);
    CHECK_EQ(world.steps.back().micro_batches, 1);
}

TEST(parallel_bounds_who_runs_and_the_rest_waits_its_turn) {
    World world(streams(4), {.parallel = 2, .step_token_budget = 64});
    for (std::uint32_t i = 0; i < 5; ++i)
        world.submit(words(i, 10), 5);
    world.step();
    CHECK_EQ(world.scheduler.stats().running, 2);
    CHECK_EQ(world.scheduler.stats().waiting, 3);
    world.run();
    for (SequenceId id = 1; id <= 5; ++id)
        CHECK_EQ(world.outcomes.at(id).sampled.size(), 5u);
    CHECK_EQ(world.scheduler.stats().cells_used, 0);
}

TEST(a_full_window_stops_its_own_sequence_only) {
    World world(streams(4));
    const SequenceId slow =
        world.submit({.prompt = words(1, 5), .limits = {.max_tokens = 50, .window = 3}});
    const SequenceId fast = world.submit(words(2, 5), 20);
    world.run();
    CHECK_EQ(world.outcomes.at(slow).sampled.size(), 3u);
    CHECK(world.outcomes.at(fast).finished);
    world.scheduler.acknowledge(slow, 2);
    world.run();
    CHECK_EQ(world.outcomes.at(slow).sampled.size(), 5u);
    world.scheduler.acknowledge(slow, 1000);
    for (int i = 0; i < 60; ++i) {
        world.step();
        world.scheduler.acknowledge(slow, 1);
    }
    CHECK_EQ(world.outcomes.at(slow).sampled, world.reference(words(1, 5), 50));
}

TEST(a_prompt_longer_than_the_context_fails_by_event) {
    World world(streams(2, 64));
    const SequenceId id = world.submit(words(1, 64), 1);
    CHECK(world.outcomes.at(id).failed);
    CHECK(world.outcomes.at(id).fail == FailCode::kContextLength);
    const SequenceId fits = world.submit(words(1, 63), 10);
    world.run();
    CHECK(world.outcomes.at(fits).finish == FinishReason::kLength);
    CHECK_EQ(world.outcomes.at(fits).sampled.size(), 1u);
}

TEST(stop_strings_end_before_themselves) {
    World world(streams(2));
    const auto script = tokens_of("hello STOP more");
    const SequenceId id =
        world.submit({.prompt = words(1, 5), .sampling = {.script = script}, .stop = {"STOP"}});
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string("hello "));
    CHECK(world.outcomes.at(id).finish == FinishReason::kStopString);
    CHECK_EQ(world.outcomes.at(id).stop_string, std::string("STOP"));
}

TEST(cancelling_frees_in_every_state) {
    World world(streams(3), {.parallel = 1, .step_token_budget = 16});
    const SequenceId prefilling = world.submit(words(1, 100), 5);
    const SequenceId waiting = world.submit(words(2, 100), 5);
    world.step();
    world.scheduler.cancel(waiting, 0);
    world.scheduler.cancel(prefilling, 0);
    world.run();
    CHECK(world.outcomes.at(prefilling).finish == FinishReason::kCancelled);
    CHECK(world.outcomes.at(waiting).finish == FinishReason::kCancelled);
    const EngineStats stats = world.scheduler.stats();
    CHECK_EQ(stats.running + stats.waiting + stats.held, 0);
    CHECK_EQ(stats.cells_used, 0);
    // What was prefilled before the cancel is still good.
    const SequenceId again = world.submit(words(1, 100), 5);
    world.run();
    CHECK_EQ(world.outcomes.at(again).usage.cached_tokens, 16);
    CHECK_EQ(world.outcomes.at(again).sampled, world.reference(words(1, 100), 5));
}

TEST(a_decode_call_is_interrupted_when_all_its_sequences_are_cancelled) {
    World world(streams(3), {.parallel = 2, .step_token_budget = 32});
    SequenceId unwanted = 0;
    world.scheduler.interrupt_for([&](SequenceId id) { return id == unwanted; });
    const SequenceId cancelled = unwanted = world.submit(words(1, 200), 5);
    world.step();
    CHECK_EQ(world.backend.rows(), 32);  // the first rows stay
    world.step();
    CHECK_EQ(world.backend.rows(), 32);
    CHECK_EQ(world.steps.size(), 1u);
    // Beside another sequence it is computed.
    const SequenceId beside = world.submit(words(2, 20), 5);
    unwanted = 0;
    while (world.scheduler.stats().running < 2 || world.outcomes[beside].sampled.empty())
        world.step();
    unwanted = cancelled;
    const auto rows = world.backend.rows();
    world.step();
    CHECK(world.backend.rows() > rows);
    world.scheduler.cancel(cancelled, 0);
    world.run();
    CHECK(world.outcomes.at(cancelled).finish == FinishReason::kCancelled);
    CHECK_EQ(world.outcomes.at(beside).sampled, world.reference(words(2, 20), 5));
}

TEST(a_failed_decode_fails_its_batch_and_nothing_later) {
    World world(streams(4));
    world.backend.set_status(1, DecodeStatus::kFailed);
    const SequenceId first = world.submit(words(1, 10), 5);
    world.run();
    CHECK(world.outcomes.at(first).failed);
    CHECK(world.outcomes.at(first).fail == FailCode::kDecodeFailed);
    const SequenceId second = world.submit(words(1, 10), 5);
    world.run();
    CHECK_EQ(world.outcomes.at(second).sampled, world.reference(words(1, 10), 5));
}

TEST(without_cells_the_youngest_is_recomputed_and_loses_nothing) {
    World world(unified(8, 120, 100), {.parallel = 4, .step_token_budget = 64});
    std::vector<SequenceId> ids;
    for (std::uint32_t i = 0; i < 4; ++i)
        ids.push_back(world.submit(words(i, 20), 40));
    world.run();
    for (std::uint32_t i = 0; i < 4; ++i) {
        CHECK(world.outcomes.at(ids[i]).finished);
        CHECK_EQ(world.outcomes.at(ids[i]).sampled, world.reference(words(i, 20), 40));
    }
    CHECK(world.scheduler.stats().recomputed_tokens > 0);
}

TEST_MAIN()
