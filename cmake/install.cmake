# SPDX-License-Identifier: MIT
#
# What `cmake --install` leaves behind: header, libraries, program with its completions and model,
# manual pages, licence, pkg-config file and CMake package. All paths in them are relative, so the
# tree may be moved.
include(CMakePackageConfigHelpers)

install(FILES include/mha/mha.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mha)
install(TARGETS mha mha_static EXPORT mha-targets)
if(TARGET mha_model_shared)
    install(FILES include/mha/mha_model.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mha)
    install(TARGETS mha_model_shared mha_model_static EXPORT mha-model-targets)
endif()
if(MHA_MPI_NAMES)
    install(FILES include/mha/mha_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mha)
endif()
foreach(mpi IN LISTS MHA_MPI_NAMES)
    install(TARGETS mha_mpi_${mpi} mha_mpi_${mpi}_static EXPORT mha-mpi-${mpi}-targets)
    install(TARGETS mha_mpi_program_${mpi})
    install(FILES man/mha-mpi.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    # "man mha-mpi-openmpi" is that page.
    set(page ${PROJECT_BINARY_DIR}/man/mha-mpi-${mpi}.1)
    file(WRITE ${page} ".so man1/mha-mpi.1\n")
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libmha)
if(MHA_BUILD_PROGRAM)
    install(TARGETS mha_executable)
    install(FILES man/mha.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES completions/mha.bash RENAME mha
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES completions/_mha DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES completions/mha.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
    install(FILES models/lab-en-fr.safetensors DESTINATION ${CMAKE_INSTALL_DATADIR}/mha/models)
    # "make wasm" builds it; "mha view --live" needs it.
    install(FILES ${PROJECT_BINARY_DIR}/wasm/mha_page.wasm OPTIONAL
            DESTINATION ${CMAKE_INSTALL_DATADIR}/mha)
    install(DIRECTORY models/en-fr models/captions models/detector models/vit-fashion
            DESTINATION ${CMAKE_INSTALL_DATADIR}/mha/models)
endif()

# ----------------------------------------------------------- manual pages -----

# add_manual_page(NAME ALIAS...): install man/NAME.3, and one page for each alias that points to it.
function(add_manual_page name)
    install(FILES man/${name}.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
    foreach(alias IN LISTS ARGN)
        set(page ${PROJECT_BINARY_DIR}/man/${alias}.3)
        file(WRITE ${page} ".so man3/${name}.3\n")
        install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
    endforeach()
endfunction()

add_manual_page(libmha)
add_manual_page(mha_attention mha_view_bhld mha_view_blhd mha_out_bhld mha_out_blhd
                mha_status_string mha_dtype_size mha_isa_name mha_isa_base mha_version
                mha_version_string mha_attention_weights mha_attention_weights_work_size
                mha_attention_check)
add_manual_page(mha_attention_backward mha_backward_work_size mha_attention_backward_check)
add_manual_page(mha_plan mha_plan_create mha_plan_work_size mha_plan_run mha_plan_explain
                mha_plan_free)
add_manual_page(mha_pool mha_pool_create mha_pool_create_from mha_pool_threads mha_pool_run
                mha_pool_free)
add_manual_page(mha_merge mha_merge_pooled)
add_manual_page(mha_statistics mha_row_statistics mha_head_statistics)
add_manual_page(mha_cache mha_cache_create mha_cache_free mha_cache_get_config mha_cache_length
                mha_cache_first mha_cache_free_pages mha_cache_bytes mha_cache_append mha_cache_read
                mha_cache_export_size mha_cache_export mha_cache_import
                mha_cache_truncate mha_cache_fork mha_cache_copy mha_cache_remove mha_cache_shift
                mha_cache_reorder mha_cache_save mha_cache_load mha_cache_load_as mha_cache_save_to
                mha_cache_load_from mha_cache_attention mha_cache_work_size)
add_manual_page(mha_linear mha_linear_create mha_linear_free mha_linear_bytes mha_linear_run
                mha_linear_work_size mha_linear_update mha_linear_backward
                mha_linear_backward_work_size mha_matrix_out_in mha_matrix_in_out mha_matrix_from
                mha_row_bytes mha_row_to_f32 mha_row_from_f32 mha_arena_create mha_arena_free
                mha_arithmetic_explain)
add_manual_page(mha_layer mha_layer_create mha_layer_free mha_layer_get_config mha_layer_bytes
                mha_layer_run mha_layer_work_size mha_view_ble mha_view_lbe mha_out_ble mha_out_lbe
                mha_layer_project mha_layer_output mha_layer_update mha_layer_prune
                mha_layer_prune_in mha_preset mha_preset_at)
add_manual_page(mha_feed_forward mha_feed_forward_create mha_feed_forward_free
                mha_feed_forward_bytes mha_feed_forward_run mha_feed_forward_work_size
                mha_linear_run_fused mha_norm_run mha_activation_run)
add_manual_page(mha_layer_backward mha_layer_backward_work_size mha_layer_tape_size
                mha_layer_output_backward mha_layer_project_backward)
if(TARGET mha_model_shared)
    add_manual_page(libmha_model)
    add_manual_page(mha_tokenizer mha_tokenizer_open mha_tokenizer_free mha_tokenizer_size
                    mha_tokenizer_kind mha_tokenizer_encode mha_tokenizer_encode_pair
                    mha_tokens_free mha_tokenizer_decode mha_text_free mha_tokenizer_piece
                    mha_tokenizer_find mha_tokenizer_flags mha_tokenizer_mark mha_tokenizer_chat)
    add_manual_page(mha_model mha_model_open mha_model_free mha_model_get_info mha_model_tokenizer
                    mha_model_target_tokenizer mha_model_describe mha_model_heads mha_model_arithmetic
                    mha_model_family_at)
    add_manual_page(mha_state mha_state_create mha_state_free mha_state_length mha_state_capacity mha_state_tokens
                    mha_state_bytes mha_state_truncate mha_state_fork mha_state_reorder
                    mha_state_save mha_state_load)
    add_manual_page(mha_model_run mha_model_work_size mha_model_prune mha_model_save)
    add_manual_page(mha_model_generate mha_generation_free mha_model_score mha_model_encode)
endif()

if(MHA_MPI_NAMES)
    add_manual_page(libmha_mpi mha_mpi_group_create mha_mpi_group_from_int mha_mpi_group_free
                    mha_mpi_group_rank mha_mpi_group_ranks mha_mpi_agree mha_mpi_rows mha_mpi_plan_create
                    mha_mpi_plan_free mha_mpi_plan_work_size mha_mpi_plan_sent
                    mha_mpi_plan_explain mha_mpi_plan_run mha_mpi_plan_backward
                    mha_mpi_cache_create mha_mpi_cache_free mha_mpi_cache_length
                    mha_mpi_cache_append mha_mpi_cache_attention
                    mha_mpi_sum_create mha_mpi_sum_add mha_mpi_sum_finish mha_mpi_sum_free)
endif()

# ----------------------------------------------- pkg-config, CMake package -----

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
set(pc_prefix "\${pcfiledir}/${pc_up}")
cmake_path(APPEND pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/libmha.pc.in libmha.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/libmha.pc DESTINATION ${pkgconfig_dir})

if(TARGET mha_model_shared)
    list(TRANSFORM MHA_TEXT_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE pc_model_private)
    string(JOIN " " pc_model_private ${pc_model_private})
    configure_file(cmake/libmha_model.pc.in libmha_model.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/libmha_model.pc DESTINATION ${pkgconfig_dir})
endif()

foreach(mpi IN LISTS MHA_MPI_NAMES)
    set(pc_mpi ${mpi})
    configure_file(cmake/libmha_mpi.pc.in libmha_mpi-${mpi}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/libmha_mpi-${mpi}.pc DESTINATION ${pkgconfig_dir})
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mha)
configure_package_config_file(cmake/mha-config.cmake.in mha-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(mha-config-version.cmake COMPATIBILITY ${MHA_INTERFACE_COMPATIBILITY})
install(FILES ${PROJECT_BINARY_DIR}/mha-config.cmake ${PROJECT_BINARY_DIR}/mha-config-version.cmake
        DESTINATION ${package_dir})
install(EXPORT mha-targets NAMESPACE mha:: DESTINATION ${package_dir})
if(TARGET mha_model_shared)
    install(EXPORT mha-model-targets NAMESPACE mha:: DESTINATION ${package_dir})
endif()
foreach(mpi IN LISTS MHA_MPI_NAMES)
    install(EXPORT mha-mpi-${mpi}-targets NAMESPACE mha:: DESTINATION ${package_dir})
endforeach()
