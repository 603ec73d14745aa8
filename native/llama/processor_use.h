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
    // Whether it may use them, by the core's number; of no meaning where `cores` is 0.
    const std::vector<bool>& usable() const { return usable_; }
    // Seconds since the system started. Empty where they are not known.
    std::optional<ProcessorUse> read();

   private:
    int file_ = -1;
    std::int32_t cores_ = 0;
    std::vector<bool> usable_;
};

}  // namespace fermata
