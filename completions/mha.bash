# SPDX-License-Identifier: MIT
# bash completion for mha

_mha_suffixes="f32 f16 bf16 f64 q= k= v= o= causal tl br offset= window= mask=bool50 mask=add bias \
alibi sink softcap= scale= pad padk docs= packed lse weights avg layout=bhld layout=blhd t="

# A problem word: extents are the user's own, suffixes are offered after each colon. Bash breaks
# words at colons, so only the last part is ours to replace.
_mha_word() {
    case $1 in
    *:*) COMPREPLY=($(compgen -W "$_mha_suffixes" -- "${cur##*:}")) ;;
    "") COMPREPLY=(b1h12l1024d64) ;;
    esac
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}

_mha() {
    local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} line=${COMP_LINE:0:COMP_POINT}
    COMPREPLY=()
    [[ $cur == : ]] && cur=
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "demo verify bench explain version words help --help --version" \
            -- "$cur"))
        return
    fi
    case $previous in
    --svg)
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    --configs | --seed | --threads | --rounds | --heads | --sentence) return ;;
    esac
    local options
    case $command in
    demo) options="--sentence --causal --heads --seed --svg --help" ;;
    verify) options="--configs --seed --case --threads --json --help" ;;
    bench) options="--threads --rounds --table --json --help" ;;
    explain) options="--threads --json --help" ;;
    version) options="--json --help" ;;
    help)
        COMPREPLY=($(compgen -W "demo verify bench explain version words" -- "$cur"))
        return
        ;;
    *) return ;;
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    elif [[ $command == bench || $command == explain || $previous == --case ]]; then
        _mha_word "${line##* }"
    fi
}

complete -F _mha mha
