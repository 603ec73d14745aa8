// What the cores that this process may use have done so far. Linux; elsewhere nothing is known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/thread_budget.h"

namespace fermata {

class ProcessorUseReader {
   public:
    ProcessorUseReader();
    ~ProcessorUseReader();
    ProcessorUseReader(const ProcessorUseReader&) = delete;
    ProcessorUseReader& operator=(const ProcessorUseReader&) = delete;

    // That this process may use; 0: not known.
    std::int32_t cores() const { return cores_; }
    // Seconds since the system started. Empty where they are not known.
    std::optional<ProcessorUse> read();

   private:
    int file_ = -1;
    std::int32_t cores_ = 0;
    std::vector<bool> usable_;  // by the core's number
};

}  // namespace fermata
