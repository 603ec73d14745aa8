// Prefill rows beside sequences that decode: as many as the measured time per row allows.
#include "core/prefill_budget.h"

#include <algorithm>

#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

// A device with a time of its own: a pass takes `pass_ms`, each row `row_ms`.
struct Device {
    double pass_ms;
    double row_ms;
};

// Runs until nothing is left; after each step the scheduler is told what the device took.
void run_on(const Device& device, World& world) {
    for (std::size_t told = 0; world.step();) {
        for (; told < world.steps.size(); ++told) {
            const StepReport& step = world.steps[told];
            world.scheduler.took(device.pass_ms +
                                 device.row_ms * (step.prefill_rows + step.decode_rows));
        }
    }
}

double longest_beside_decode(const Device& device, std::int32_t target_ms,
                             bool elastic_target = false) {
    World world(streams(4, 4096, 512), {.parallel = 4,
                                        .step_token_budget = 512,
                                        .target_itl_ms = target_ms,
                                        .elastic_target = elastic_target});
    world.submit(words(1, 20), 400);
    for (int i = 0; i < 3; ++i) {
        world.step();
        world.scheduler.took(device.pass_ms + device.row_ms * (i == 0 ? 20 : 1));
    }
    world.steps.clear();
    world.submit(words(2, 3000), 4);
    run_on(device, world);
    double longest = 0.0;
    for (const StepReport& step : world.steps) {
        if (step.decode_rows > 0)
            longest = std::max(
                longest, device.pass_ms + device.row_ms * (step.prefill_rows + step.decode_rows));
    }
    return longest;
}

}  // namespace

TEST(streams_of_a_slow_model_wait_for_the_target_at_most) {
    const Device slow{.pass_ms = 80.0, .row_ms = 10.0};  // 512 rows: five seconds
    CHECK(longest_beside_decode(slow, 0) > 5000.0);
    const double longest = longest_beside_decode(slow, 250);
    CHECK(longest <= 275.0);
    CHECK(longest >= 200.0);  // and the prompt is computed as fast as that allows
}

TEST(a_fast_model_computes_whole_chunks) {
    const Device fast{.pass_ms = 2.0, .row_ms = 0.1};
    CHECK(longest_beside_decode(fast, 250) > 53.0);
}

TEST(elastic_steps_are_as_short_as_leaves_their_passes_cheap) {
    const Device fast{.pass_ms = 1.0, .row_ms = 0.4};  // 512 rows: 206 ms
    CHECK(longest_beside_decode(fast, 250) > 200.0);
    const double longest = longest_beside_decode(fast, 250, true);
    CHECK(longest <= 35.0);
    CHECK(longest >= 30.0);
    const Device slower{.pass_ms = 9.6, .row_ms = 0.4};  // a step without prefill rows: 10 ms
    CHECK(longest_beside_decode(slower, 250, true) <= 111.0);
    CHECK(longest_beside_decode(slower, 250, true) >= 100.0);
}

// 3,000 rows are cut, and the last 91 are one step.
TEST(the_rest_of_a_prompt_is_one_step_of_four_times_the_target) {
    const Device slow{.pass_ms = 80.0, .row_ms = 10.0};
    const double longest = longest_beside_decode(slow, 250, true);
    CHECK(longest <= 1010.0);
    CHECK(longest >= 600.0);
}

// A step without prefill rows takes 120 ms.
TEST(two_steps_only_decode_after_a_long_one) {
    const Device device{.pass_ms = 112.0, .row_ms = 4.0};
    World world(
        streams(4, 4096, 512),
        {.parallel = 4, .step_token_budget = 512, .target_itl_ms = 250, .elastic_target = true});
    world.submit(words(1, 20), 400);
    world.submit(words(2, 20), 400);
    for (int i = 0; i < 3; ++i) {
        world.step();
        world.scheduler.took(device.pass_ms + device.row_ms * (i == 0 ? 40 : 2));
    }
    world.steps.clear();
    world.submit(words(3, 100), 4);
    world.submit(words(4, 100), 4);
    run_on(device, world);
    std::vector<std::size_t> read_in;
    for (std::size_t i = 0; i < world.steps.size(); ++i) {
        if (world.steps[i].prefill_rows == 0) continue;
        CHECK_EQ(world.steps[i].prefill_rows, 100);
        read_in.push_back(i);
    }
    CHECK_EQ(read_in.size(), 2u);
    CHECK_EQ(read_in.back() - read_in.front(), 3u);
}

// Beyond the target, whatever is done.
TEST(beside_a_very_slow_decode_half_of_a_step_is_prefill) {
    PrefillBudget budget(250, true);
    budget.took(0, 400.0);
    budget.took(100, 900.0);  // 5 ms a row
    CHECK_EQ(budget.rows(), 80);
    PrefillBudget asked_for(250);
    asked_for.took(0, 400.0);
    asked_for.took(100, 900.0);
    CHECK_EQ(asked_for.rows(), PrefillBudget::kLeast);
    CHECK_EQ(asked_for.rows_for(20), PrefillBudget::kLeast);
}

// Short prompts come all the time. Each that comes before the long one would have been read alone
// goes first, and none of those behind.
TEST(a_short_prompt_passes_a_long_one_which_is_read_all_the_same) {
    const Device device{.pass_ms = 20.0, .row_ms = 1.0};
    World world(streams(8, 4096, 512),
                {.parallel = 8, .step_token_budget = 128, .target_itl_ms = 250});
    world.submit(words(1, 20), 1);
    run_on(device, world);  // what a row takes is known now
    const SequenceId long_one = world.submit(words(2, 2000), 2);
    const auto read = [&](SequenceId id) { return !world.outcomes[id].sampled.empty(); };
    std::vector<SequenceId> short_ones;
    std::size_t told = world.steps.size();
    while (!read(long_one)) {
        if (world.now % 3 == 0) short_ones.push_back(world.submit(words(3 + world.now, 100), 2));
        CHECK(world.step());
        double took = 0.0;
        for (; told < world.steps.size(); ++told) {
            const StepReport& step = world.steps[told];
            took = device.pass_ms + device.row_ms * (step.prefill_rows + step.decode_rows);
        }
        world.scheduler.took(took);
        world.now += static_cast<Milliseconds>(took);
        CHECK(world.now < 12'000);
    }
    CHECK(read(short_ones.front()));
    CHECK(read(short_ones[1]));
    CHECK(world.now >= 2'000);
}

TEST(nobody_who_decodes_waits_for_a_chunk) {
    World world(streams(4, 4096, 512),
                {.parallel = 4, .step_token_budget = 512, .target_itl_ms = 250});
    world.submit(words(2, 2000), 1);
    run_on({.pass_ms = 80.0, .row_ms = 10.0}, world);
    CHECK_EQ(world.steps.front().prefill_rows, 512);
    CHECK_EQ(world.steps.size(), 4u);
}

TEST(rows_follow_what_was_measured) {
    PrefillBudget budget(250);
    budget.took(0, 0.0);
    CHECK(budget.rows() > 100'000);
    budget.took(0, 50.0);
    budget.took(100, 150.0);  // 1 ms a row
    CHECK_EQ(budget.rows(), 200);
    budget.took(100, 50'000.0);  // once is not taken at its word
    CHECK(budget.rows() >= 100);
    for (int i = 0; i < 40; ++i)
        budget.took(100, 50'000.0);
    CHECK_EQ(budget.rows(), PrefillBudget::kLeast);
    for (int i = 0; i < 40; ++i)
        budget.took(100, 60.0);
    CHECK(budget.rows() > 1000);
    PrefillBudget unlimited(0);
    unlimited.took(100, 50'000.0);
    CHECK(unlimited.rows() > 100'000);
}

TEST_MAIN()
