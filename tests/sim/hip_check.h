/* hip_check.h - what the C host programs of these tests do when a call or a condition is not as it should be.
 */
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(code, call)                                                                                       \
    do {                                                                                                     \
        hipError_t e_ = (call);                                                                              \
        if (e_ != (code)) {                                                                                  \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, hipGetErrorName(e_));                      \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)
#define OK(call) IS(hipSuccess, call)
#define CHECK(cond)                                                                                          \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "line %d: %s\n", __LINE__, #cond);                                               \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)
