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
                             bool short_chunks = false) {
    World world(streams(4, 4096, 512), {.parallel = 4,
                                        .step_token_budget = 512,
                                        .target_itl_ms = target_ms,
                                        .short_chunks = short_chunks});
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

TEST(short_chunks_are_as_large_as_makes_their_passes_cheap) {
    const Device fast{.pass_ms = 1.0, .row_ms = 0.4};  // 512 rows: 206 ms
    CHECK(longest_beside_decode(fast, 250) > 200.0);
    const double longest = longest_beside_decode(fast, 250, true);
    CHECK(longest <= 35.0);
    CHECK(longest >= 30.0);
    const Device slower{.pass_ms = 9.6, .row_ms = 0.4};  // a step without prefill rows: 10 ms
    CHECK(longest_beside_decode(slower, 250, true) <= 111.0);
    CHECK(longest_beside_decode(slower, 250, true) >= 100.0);
    const Device slow{.pass_ms = 80.0, .row_ms = 10.0};
    CHECK(longest_beside_decode(slow, 250, true) <= 275.0);
    CHECK(longest_beside_decode(slow, 250, true) >= 200.0);
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
