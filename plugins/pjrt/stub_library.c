/* A library of PJRT for tests, of version MAJOR.7, whose table ends behind the version. */
#include <pjrt_c_api.h>

__attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi(void);

const PJRT_Api* GetPjrtApi(void) {
  static PJRT_Api api;
  api.struct_size = PJRT_STRUCT_SIZE(PJRT_Api, pjrt_api_version);
  api.pjrt_api_version.major_version = MAJOR;
  api.pjrt_api_version.minor_version = 7;
  return &api;
}
