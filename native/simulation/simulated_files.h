// Files of sequences in simulated time: a folder of one server, or a Redis that servers share. What
// is read and written queues at its bandwidth.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/sequence_files.h"

namespace fermata {

struct FileSpeed {
    double read_bytes_per_ms = 1;
    double write_bytes_per_ms = 1;
    double latency_ms = 0;
};

// A queue in front of something that does one thing at a time.
class Link {
   public:
    // When something that is asked for at `now` and takes `milliseconds` is done.
    double use(double now, double milliseconds) {
        free_at_ = (free_at_ > now ? free_at_ : now) + milliseconds;
        busy_ms_ += milliseconds;
        return free_at_;
    }
    double free_at() const { return free_at_; }
    double busy_ms() const { return busy_ms_; }

   private:
    double free_at_ = 0;
    double busy_ms_ = 0;
};

// What servers share: the announced heads, and one link that all reads and writes go through.
class SharedFiles {
   public:
    struct Head {
        Salt salt = 0;
        std::vector<Token> tokens;
        std::int64_t bytes = 0;
        std::int32_t length = 0;
        double written_at = 0;
        const void* writer = nullptr;
    };
    explicit SharedFiles(FileSpeed speed) : speed_(speed) {}
    const FileSpeed& speed() const { return speed_; }

    Link link;
    std::vector<std::shared_ptr<const Head>> heads;

   private:
    FileSpeed speed_;
};

class SimulatedFiles final : public SequenceFiles {
   public:
    // `shared`: nullptr for a folder of its own.
    SimulatedFiles(FileSpeed speed, std::shared_ptr<SharedFiles> shared);

    // From now on it is so late.
    void set_now(double now) { now_ = now; }
    // When the next read or write is done; below 0: none is under way.
    double next_outcome_at() const;
    std::int64_t read_bytes() const { return read_bytes_; }
    std::int64_t written_bytes() const { return written_bytes_; }

    std::vector<FoundFile> take_found() override;
    double read_ms(std::int64_t bytes) const override;
    bool has_room(std::int64_t bytes) const override;
    bool wait_for_room(std::int64_t) override { return false; }
    void write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
               std::vector<SavedCells> forks) override;
    void read(FileId id) override;
    void remove(FileId id) override;
    std::vector<FileOutcome> take_outcomes() override;
    std::int64_t foreign() const override { return 0; }
    std::int64_t damaged_when_found() const override { return 0; }
    std::string fault() const override { return {}; }

   private:
    struct Kept {
        std::int64_t bytes = 0;
        std::int32_t length = 0;
    };
    double done_at(double milliseconds);

    FileSpeed speed_;
    std::shared_ptr<SharedFiles> shared_;
    std::size_t seen_ = 0;  // of the shared heads
    Link link_;
    std::map<FileId, Kept> kept_;
    std::multimap<double, FileOutcome> under_way_;
    double now_ = 0;
    std::int64_t read_bytes_ = 0, written_bytes_ = 0;
};

}  // namespace fermata
