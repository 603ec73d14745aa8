#include "simulation/simulated_engine.h"

#include <limits>
#include <utility>

namespace fermata {

SimulatedEngine::SimulatedEngine(SimulatedEngineConfig config)
    : backend_(config.shape, config.bytes_per_token),
      files_(config.scheduler.disk_limit > 0
                 ? std::make_unique<SimulatedFiles>(config.files, std::move(config.shared))
                 : nullptr),
      scheduler_(config.scheduler, backend_, nullptr, files_.get()) {}

void SimulatedEngine::submit(const SimulatedTurn& turn) {
    SubmitRequest request;
    request.id = turn.id;
    request.prompt = tokens_of(turn.prefix_seed, 0, turn.shared);
    const std::vector<Token> own = tokens_of(turn.seed, turn.shared, turn.length);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.sampling.script = tokens_of(turn.seed, turn.length, turn.length + turn.generated);
    request.limits.max_tokens = turn.generated;
    request.limits.window = std::numeric_limits<std::int32_t>::max();
    request.lease_ms = turn.lease_ms;
    scheduler_.submit(std::move(request));
}

bool SimulatedEngine::step(double now) {
    if (files_) files_->set_now(now);
    return scheduler_.step(static_cast<Milliseconds>(now));
}

}  // namespace fermata
