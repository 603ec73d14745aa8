#include "simulation/simulated_files.h"

#include <algorithm>
#include <utility>

namespace fermata {

namespace {

// As QueuedFiles: what waits to be written at most.
constexpr double kMostQueuedMs = 2'000;

}  // namespace

SimulatedFiles::SimulatedFiles(FileSpeed speed, std::shared_ptr<SharedFiles> shared)
    : speed_(shared ? shared->speed() : speed), shared_(std::move(shared)) {}

double SimulatedFiles::next_outcome_at() const {
    return under_way_.empty() ? -1 : under_way_.begin()->first;
}

// Its own thread does one thing at a time, and so does what servers share.
double SimulatedFiles::done_at(double milliseconds) {
    const double own = link_.use(now_, milliseconds);
    const double all = shared_ ? shared_->link.use(now_, milliseconds) : own;
    return std::max(own, all) + speed_.latency_ms;
}

std::vector<FoundFile> SimulatedFiles::take_found() {
    std::vector<FoundFile> found;
    for (; shared_ && seen_ < shared_->heads.size(); ++seen_) {
        const SharedFiles::Head& head = *shared_->heads[seen_];
        if (head.writer == this) continue;
        if (head.written_at > now_) break;
        const FileId id = kFoundLater | seen_;
        kept_[id] = {.bytes = head.bytes, .length = head.length};
        found.push_back({.id = id,
                         .salt = head.salt,
                         .tokens = head.tokens,
                         .bytes = head.bytes,
                         .age_ms = static_cast<Milliseconds>(now_ - head.written_at)});
    }
    return found;
}

double SimulatedFiles::read_ms(std::int64_t bytes) const {
    const double queued = shared_ ? std::max(shared_->link.free_at() - now_, 0.0) : 0.0;
    return queued + speed_.latency_ms + static_cast<double>(bytes) / speed_.read_bytes_per_ms;
}

bool SimulatedFiles::has_room(std::int64_t /*bytes*/) const {
    return std::max(link_.free_at(), shared_ ? shared_->link.free_at() : 0) - now_ < kMostQueuedMs;
}

void SimulatedFiles::write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
                           std::vector<SavedCells> /*forks*/) {
    const auto bytes =
        static_cast<std::int64_t>(cells.size() + tokens.size() * sizeof(Token)) + kFileHeaderBytes;
    const double at = done_at(static_cast<double>(bytes) / speed_.write_bytes_per_ms);
    kept_[id] = {.bytes = static_cast<std::int64_t>(cells.size()), .length = cells.length()};
    written_bytes_ += bytes;
    under_way_.emplace(at, FileOutcome{.id = id, .event = FileEvent::kWritten});
    if (!shared_) return;
    shared_->heads.push_back(std::make_shared<const SharedFiles::Head>(
        SharedFiles::Head{.salt = salt,
                          .tokens = std::move(tokens),
                          .bytes = static_cast<std::int64_t>(cells.size()),
                          .length = cells.length(),
                          .written_at = at,
                          .writer = this}));
}

void SimulatedFiles::read(FileId id) {
    const Kept& kept = kept_.at(id);
    const double at = done_at(static_cast<double>(kept.bytes) / speed_.read_bytes_per_ms);
    read_bytes_ += kept.bytes;
    under_way_.emplace(
        at, FileOutcome{.id = id,
                        .event = FileEvent::kRead,
                        .cells = SavedCells(static_cast<std::size_t>(kept.bytes), kept.length)});
}

void SimulatedFiles::remove(FileId id) {
    kept_.erase(id);
}

std::vector<FileOutcome> SimulatedFiles::take_outcomes() {
    std::vector<FileOutcome> outcomes;
    while (!under_way_.empty() && under_way_.begin()->first <= now_) {
        outcomes.push_back(std::move(under_way_.begin()->second));
        under_way_.erase(under_way_.begin());
    }
    return outcomes;
}

}  // namespace fermata
