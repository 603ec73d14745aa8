// A fault: the system starts no thread.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "check.h"

namespace fermata::testing {

#ifdef __GLIBC__

// As long as it lives, a thread would need a stack that no address space has room for.
class NoThreads {
   public:
    NoThreads() {
        pthread_getattr_default_np(&before_);
        pthread_attr_t attributes = before_;
        CHECK_EQ(pthread_attr_setstacksize(&attributes, std::size_t{1} << 48), 0);
        CHECK_EQ(pthread_setattr_default_np(&attributes), 0);
    }
    ~NoThreads() { pthread_setattr_default_np(&before_); }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;

   private:
    pthread_attr_t before_ = {};
};

#endif

}  // namespace fermata::testing
