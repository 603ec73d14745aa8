// The functions of the CUDA driver that ggml-cuda calls, found in the driver's library when they
// are called. Linked with that library, the addon would not load on a machine without the driver,
// and would need a stub of it at build time. With this it loads and finds no device.
#include <cuda.h>
#include <dlfcn.h>

namespace {

template <class Function>
Function* find(const char* name) {
    static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(driver, name));
}

}  // namespace

// cuda.h defines some names as macros for a newer version of the function.
#define FERMATA_NAME(function) #function
#define FERMATA_FORWARD(function, parameters, arguments)                            \
    CUresult CUDAAPI function parameters {                                          \
        static const auto found = find<decltype(function)>(FERMATA_NAME(function)); \
        return found == nullptr ? CUDA_ERROR_NO_DEVICE : found arguments;           \
    }

extern "C" {

FERMATA_FORWARD(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal))
FERMATA_FORWARD(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device),
                (value, attribute, device))
FERMATA_FORWARD(cuMemAddressFree, (CUdeviceptr address, size_t size), (address, size))
FERMATA_FORWARD(cuMemAddressReserve,
                (CUdeviceptr * address, size_t size, size_t alignment, CUdeviceptr wanted,
                 unsigned long long flags),
                (address, size, alignment, wanted, flags))
FERMATA_FORWARD(cuMemCreate,
                (CUmemGenericAllocationHandle * handle, size_t size,
                 const CUmemAllocationProp* properties, unsigned long long flags),
                (handle, size, properties, flags))
FERMATA_FORWARD(cuMemGetAllocationGranularity,
                (size_t* granularity, const CUmemAllocationProp* properties,
                 CUmemAllocationGranularity_flags option),
                (granularity, properties, option))
FERMATA_FORWARD(cuMemMap,
                (CUdeviceptr address, size_t size, size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long flags),
                (address, size, offset, handle, flags))
FERMATA_FORWARD(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))
FERMATA_FORWARD(cuMemSetAccess,
                (CUdeviceptr address, size_t size, const CUmemAccessDesc* access, size_t count),
                (address, size, access, count))
FERMATA_FORWARD(cuMemUnmap, (CUdeviceptr address, size_t size), (address, size))

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
    static const auto found = find<decltype(cuGetErrorString)>("cuGetErrorString");
    if (found != nullptr) return found(error, text);
    *text = "the CUDA driver (libcuda.so.1) is not here";
    return CUDA_SUCCESS;
}

}  // extern "C"
