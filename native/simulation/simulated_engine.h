// The scheduler of an engine on a SimulatedBackend: everything but the model and the clock is the
// code that serves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/scheduler.h"
#include "simulation/simulated_backend.h"
#include "simulation/simulated_files.h"

namespace fermata {

struct SimulatedEngineConfig {
    SchedulerConfig scheduler = {};
    CacheShape shape = {};
    std::int64_t bytes_per_token = 1;
    FileSpeed files = {};  // of the folder, if disk_limit says that there is one
    std::shared_ptr<SharedFiles> shared = {};  // in place of a folder
};

// A turn of a conversation: its prompt is the first `shared` tokens of `prefix_seed` and then those
// of `seed`, `length` in all; what it generates are the next tokens of `seed`.
struct SimulatedTurn {
    SequenceId id = 0;
    std::uint64_t prefix_seed = 0, seed = 0;
    std::int32_t shared = 0, length = 1, generated = 1;
    Milliseconds lease_ms = 0;
};

class SimulatedEngine {
   public:
    explicit SimulatedEngine(SimulatedEngineConfig config);

    void submit(const SimulatedTurn& turn);
    // false: there was nothing to do, now.
    bool step(double now);
    // How long the step took that there was.
    void took(double milliseconds) { scheduler_.took(milliseconds); }
    Work take_work() { return backend_.take_work(); }
    EventBatch take_events() { return scheduler_.take_events(); }
    EngineStats stats() const { return scheduler_.stats(); }
    const SimulatedFiles* files() const { return files_.get(); }

   private:
    SimulatedBackend backend_;
    std::unique_ptr<SimulatedFiles> files_;
    Scheduler scheduler_;
};

}  // namespace fermata
