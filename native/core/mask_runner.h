// Runs the making of masks beside a decode call. runtime/ has one with threads.
#pragma once

#include <span>

#include "core/guide.h"

namespace fermata {

class MaskRunner {
   public:
    virtual ~MaskRunner() = default;
    // Begins to prepare() each guide; nobody else may use them until finish().
    virtual void start(std::span<Guide* const> guides) = 0;
    // Returns when every guide of the last start is prepared.
    virtual void finish() = 0;
};

}  // namespace fermata
