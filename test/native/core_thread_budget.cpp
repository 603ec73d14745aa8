// core/thread_budget: as many threads as there are cores that nobody else uses.
#include "check.h"
#include "core/thread_budget.h"

using namespace fermata;

namespace {

// Two cores or more, observed every 200 ms.
struct Machine {
    ThreadBudget budget;
    ProcessorUse use{};

    // `others` cores' worth of other processes' work beside `own` of ours.
    std::int32_t after(double seconds, double others, double own) {
        for (double past = 0.0; past < seconds - 1e-9; past += 0.2) {
            use.wall += 0.2;
            use.all += 0.2 * (others + own);
            use.own += 0.2 * own;
            budget.observe(use);
        }
        return budget.threads();
    }
};

TEST(alone_all_threads_compute) {
    Machine machine{ThreadBudget(2, 2)};
    CHECK_EQ(machine.budget.threads(), 2);
    CHECK_EQ(machine.after(5.0, 0.05, 1.9), 2);
}

TEST(beside_a_busy_process_a_core_is_left_to_it) {
    Machine machine{ThreadBudget(2, 2)};
    // Three that never rest on two cores.
    CHECK_EQ(machine.after(1.0, 0.67, 1.33), 1);
    CHECK_EQ(machine.after(5.0, 1.0, 1.0), 1);
    CHECK_EQ(machine.after(1.0, 0.0, 1.0), 2);
}

TEST(one_thread_stays_whatever_the_load) {
    Machine machine{ThreadBudget(2, 2)};
    CHECK_EQ(machine.after(3.0, 1.9, 0.1), 1);
}

TEST(of_many_cores_those_that_are_taken_are_left) {
    Machine machine{ThreadBudget(8, 8)};
    CHECK_EQ(machine.after(2.0, 0.9, 7.1), 7);
    CHECK_EQ(machine.after(2.0, 3.0, 5.0), 5);
    CHECK_EQ(machine.after(2.0, 0.1, 5.0), 8);
}

TEST(cores_beyond_the_threads_may_be_taken) {
    Machine machine{ThreadBudget(4, 8)};
    CHECK_EQ(machine.after(2.0, 3.9, 4.0), 4);
    CHECK_EQ(machine.after(2.0, 6.0, 2.0), 2);
}

TEST(work_that_comes_and_goes_does_not_move_threads_to_and_fro) {
    Machine machine{ThreadBudget(2, 2)};
    CHECK_EQ(machine.after(2.0, 0.3, 1.6), 2);
    CHECK_EQ(machine.after(2.0, 0.6, 1.4), 1);
    CHECK_EQ(machine.after(2.0, 0.3, 1.0), 1);
}

TEST(a_long_pause_counts_whole) {
    Machine machine{ThreadBudget(2, 2)};
    CHECK_EQ(machine.after(2.0, 1.0, 1.0), 1);
    machine.use.wall += 60.0;
    machine.budget.observe(machine.use);
    CHECK_EQ(machine.budget.threads(), 2);
}

}  // namespace

TEST_MAIN()
