# Installs the public headers under include/helenus/, fit to live beside the headers of others:
# includes name helenus/ ("base/..." could be anybody's), and the macros have the prefix that inside
# the tree would only be noise.
set(macros ASSERT ASSERT_SLOW UNREACHABLE TRY TRY_VOID CO_TRY CO_TRY_VOID)
set(test_headers checked_filter.h checked_window.h filter_contract.h)  # and *_test_support.h

file(GLOB headers RELATIVE "${SOURCE}" "${SOURCE}/filters/*.h")
list(FILTER headers EXCLUDE REGEX "_test_support\\.h$")
foreach(header IN LISTS test_headers)
  list(REMOVE_ITEM headers "filters/${header}")
endforeach()
foreach(part IN LISTS BASE_PARTS)
  list(APPEND headers "base/${part}.h")
endforeach()

foreach(header IN LISTS headers)
  file(READ "${SOURCE}/${header}" text)
  string(REGEX REPLACE "#include \"(base|filters)/" "#include \"helenus/\\1/" text "${text}")
  foreach(macro IN LISTS macros)
    string(REGEX REPLACE "([^A-Z_])${macro}\\(" "\\1HELENUS_LIB_${macro}(" text "${text}")
  endforeach()
  set(installed "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/include/helenus/${header}")
  message(STATUS "Installing: ${installed}")
  file(CONFIGURE OUTPUT "${installed}" CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
endforeach()
