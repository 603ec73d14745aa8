// How many threads compute: as many as there are cores that nobody else uses.
//
// The threads of a graph wait for each other after each operation. One of them without a core of
// its own stops all of them for as long as the system lets somebody else run: on two cores, beside
// one busy process, two threads decode at half the speed of one.
#pragma once

#include <cstdint>

namespace fermata {

// Processor seconds since some moment, of the cores that this process may use.
struct ProcessorUse {
    double wall = 0.0;  // since that moment, of one clock
    double all = 0.0;   // of every process, without those that gave way (nice above 0)
    double own = 0.0;   // of this process
};

class ThreadBudget {
   public:
    // `most`: threads where nobody else computes; `cores` that this process may use.
    ThreadBudget(std::int32_t most, std::int32_t cores)
        : most_(most), cores_(cores), threads_(most) {}

    // What was used up to now. Counts once it is kSpan or longer since the last one that did.
    void observe(const ProcessorUse& now);
    std::int32_t threads() const { return threads_; }

    // The system counts in hundredths of a second.
    static constexpr double kSpan = 0.2;

   private:
    std::int32_t most_, cores_, threads_;
    bool begun_ = false;
    ProcessorUse last_;
    double others_ = 0.0;  // cores that other processes use
};

}  // namespace fermata
